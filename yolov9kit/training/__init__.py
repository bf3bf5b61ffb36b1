"""A run: from pictures with boxes to weights, as an iterator of reports."""
