"""From pictures to detections."""
