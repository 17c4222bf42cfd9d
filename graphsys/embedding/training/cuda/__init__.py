"""Embeddings trained on a CUDA device by Triton kernels; imported when one is asked for."""
