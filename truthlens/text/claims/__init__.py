"""Claims of a text: its clauses, what claims nothing, and refusals."""
