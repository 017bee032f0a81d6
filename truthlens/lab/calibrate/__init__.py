"""Calibration: probabilities and thresholds from held-out answers."""
