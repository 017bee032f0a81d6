"""Compare the typed values of an answer with the sentences, table rows and records of the evidence that speak of the same."""
