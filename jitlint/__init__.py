"""Static analysis and verified codemods for Python that a JIT or a graph compiler runs."""

__version__ = "0.1.0"
