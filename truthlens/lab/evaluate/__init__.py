"""Evaluation: metrics, curves, plots and reports of a detector."""
