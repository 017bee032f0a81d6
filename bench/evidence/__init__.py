"""What is taken as evidence of prompts in the form of real frameworks."""
