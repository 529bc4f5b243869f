"""Rewrites of operations whose results have sizes that depend on data."""
