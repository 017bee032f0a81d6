"""Look at a set-up, planned or running, and say what is wrong, why, and what to change."""
