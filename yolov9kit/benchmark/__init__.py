"""How fast weights run here, what that costs in memory and agreement, and how far it is from what is possible."""
