"""Prompts: templates, delimiters around data, excerpts, questions to models."""
