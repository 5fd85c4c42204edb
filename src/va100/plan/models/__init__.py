"""Files that describe models: Hugging Face configurations, small YAML, ONNX, PyTorch modules."""
