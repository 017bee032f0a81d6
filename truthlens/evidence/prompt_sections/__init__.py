"""Which units of a prompt are evidence, which the question, and which talk to the model."""
