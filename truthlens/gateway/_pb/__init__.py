"""Protobuf code compiled from protos/ when the package is installed (see hatch_build.py)."""
