"""Whole-program facts: which files there are, what they define, where regions begin."""
