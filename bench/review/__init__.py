"""Benchmarks of the review queue."""
