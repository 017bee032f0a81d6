"""Edits of an answer that leave readable text."""
