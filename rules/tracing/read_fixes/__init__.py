"""Rewrites of code that reads the values of tensors into Python."""
