"""Fixes of trace-side-effect and trace-unsupported-call."""
