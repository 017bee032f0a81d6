"""Mode agentic: a model searches sources with tools until an answer is supported by what was found."""
