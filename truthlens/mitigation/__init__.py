"""Correct unsupported answers: modes standard, premium and auto."""
