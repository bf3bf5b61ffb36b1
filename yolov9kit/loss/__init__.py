"""What a network is trained to make small."""
