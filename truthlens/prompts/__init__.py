"""Prompts to models: templates, the delimiters around data in them, and the evidence that is shown."""
