"""Readers: each opens one way of writing a data set down, and gives a ``Layout``."""
