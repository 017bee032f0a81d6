"""One HTTP attempt of a call to a model."""
