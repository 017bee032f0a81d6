"""Which members of an answer may leave beside its text, and which repeat a text that must not."""
