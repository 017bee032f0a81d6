"""Mode auto: a bandit over the modes and its reward."""
