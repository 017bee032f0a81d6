"""Dates, numbers, names and other values in a text, and whether two of them differ."""
