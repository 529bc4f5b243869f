"""What the values of a function are, as far as its source and the tables tell."""
