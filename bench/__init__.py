"""Benchmarks: `make help` lists them; results go to `bench/results/`."""
