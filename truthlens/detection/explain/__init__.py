"""Explanations of flagged spans: nearest evidence, what differs, which kind of error."""
