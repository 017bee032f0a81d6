"""Evidence in requests: passages, their provenance, and the question that is left."""
