"""Rules about code that is compiled more often than it has to be, or for the wrong shapes."""
