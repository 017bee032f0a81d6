"""Labelled data and synthetic errors to train on."""
