"""The detector ``judge``: a model says what is wrong with an answer, in two stages."""
