"""The similarity model as it is exported."""
