"""Find what the evidence does not support in an answer: detectors, their fusion and the engine."""
