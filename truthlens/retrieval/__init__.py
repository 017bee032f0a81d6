"""Evidence on demand: sources of passages, and the searches in them (``docs/retrieval.md``)."""
