"""Training of the token classifier."""
