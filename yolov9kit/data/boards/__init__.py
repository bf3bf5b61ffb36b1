"""Drawn circuit boards, from the copper to the photograph. Whole numbers only: the same pixels on every machine."""
