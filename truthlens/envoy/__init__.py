"""The real Envoy beside TruthLens: its configuration as data, and its process."""
