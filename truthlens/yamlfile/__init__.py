"""YAML files read with line numbers, and diagnostics of what is wrong in them."""
