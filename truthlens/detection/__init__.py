"""What of an answer the evidence does not support: detectors, their fusion, and the engine that runs them."""
