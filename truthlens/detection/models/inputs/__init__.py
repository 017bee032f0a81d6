"""The encoder's input: manifest, windows, selected evidence, lexical features, prompts."""
