"""The claims of an answer: what detectors find of each, and the risk that follows. Start at ``claim_risk``."""
