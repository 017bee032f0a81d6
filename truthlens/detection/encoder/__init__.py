"""The encoder: windows through a token classifier, token scores to spans and a score."""
