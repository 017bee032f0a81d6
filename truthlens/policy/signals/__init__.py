"""Signals: what the conditions of a policy mean, and how they are matched."""
