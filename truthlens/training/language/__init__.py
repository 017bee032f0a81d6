"""The table of character n-grams by which languages are told apart."""
