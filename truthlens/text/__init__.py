"""Language: sentences, words, scripts, languages, values and claims of a text. Pure functions."""
