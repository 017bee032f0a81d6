"""Configure and run the real Envoy next to TruthLens: its configuration as data, and its process."""
