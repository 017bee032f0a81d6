"""Consensus mechanisms: one file each, over compared answers."""
