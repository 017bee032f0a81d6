"""What detectors that ask models share: replies with log probabilities and in JSON, and why a call gave nothing."""
