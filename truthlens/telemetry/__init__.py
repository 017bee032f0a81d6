"""Report to operators: Prometheus metrics and one canonical log line per exchange."""
