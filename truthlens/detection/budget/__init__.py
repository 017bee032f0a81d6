"""The detector ``budget``: how much of what an answer claims comes from its evidence, by log probabilities."""
