"""Training of the reader, the model that judges a claim by the sentences that bear on it."""
