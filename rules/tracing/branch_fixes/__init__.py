"""The rewrites of `trace-branch`: one module per kind, and what they need to know of code."""
