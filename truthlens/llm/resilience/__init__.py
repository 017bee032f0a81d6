"""Retries, circuit breakers and bounds on concurrent calls."""
