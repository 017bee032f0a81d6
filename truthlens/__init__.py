"""TruthLens: a gateway sidecar that catches and mends hallucinations in live LLM answers."""

__version__ = "0.1.0"
