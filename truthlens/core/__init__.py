"""Records, errors and text functions that every other package shares; imports nothing above it."""
