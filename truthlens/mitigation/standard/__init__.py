"""Mode standard: the correction loop, its prompt and its self-check."""
