"""Reports: one module per format."""

FORMATS = ("text", "concise", "json")
