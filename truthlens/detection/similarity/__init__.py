"""Similarity of texts, by a sentence model and by shared words."""
