"""TruthLens: a gateway sidecar that catches and corrects hallucinations in live LLM answers."""

__version__ = "0.1.0"
