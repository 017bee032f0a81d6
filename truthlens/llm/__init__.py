"""Calls to models: an OpenAI-compatible client that is bounded, patient and accountable."""
