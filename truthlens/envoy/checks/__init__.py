"""Checks of an operator's Envoy configuration against a policy."""
