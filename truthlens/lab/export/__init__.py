"""Export of models: ONNX graphs, quantisation, model folders and cards."""
