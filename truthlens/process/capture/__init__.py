"""Capture exchanges to a file, with their texts, so that another policy can be tried on them (``truthlens replay``)."""
