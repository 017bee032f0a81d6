"""The words by which the parts of prompts are told, in nine languages."""
