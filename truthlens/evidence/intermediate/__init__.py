"""Calls whose result a program reads and no user."""
