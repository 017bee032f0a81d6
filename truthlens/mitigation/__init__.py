"""What is done about an unsupported answer: standard, premium and auto."""
