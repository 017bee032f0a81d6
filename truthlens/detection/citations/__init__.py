"""The detector of citations: what an answer may cite, what it cites, and what of it is wrong. No model but for ``support``."""
