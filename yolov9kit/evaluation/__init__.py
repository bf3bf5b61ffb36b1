"""How good detections are: scores that say what they are."""
