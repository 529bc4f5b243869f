"""Rules about code that a tracer cannot follow, or follows only once."""
