"""Model folders and the runtimes that run them (ONNX, torch)."""
