"""Triton kernels, each beside its plain-torch reference of the same signature."""
