"""How right the detectors were, and how the work goes, from settled entries."""
