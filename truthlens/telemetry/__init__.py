"""What operators see: Prometheus metrics and one canonical log line an exchange."""
