"""Debate: arguments about claims, attacked, defended and concluded."""
