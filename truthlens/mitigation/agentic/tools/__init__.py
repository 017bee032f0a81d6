"""The tools of mode agentic: what they are, where they are registered, and those that come with TruthLens."""
