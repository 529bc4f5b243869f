"""The built-in rules: one folder per family, one module per rule."""
