"""Detectors: one file each, behind one interface."""
