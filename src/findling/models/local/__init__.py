"""Models on this machine: ONNX, instant vectors, tokenisation."""
