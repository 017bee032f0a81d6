"""What is kept of an exchange: its content, redacted and explained."""
