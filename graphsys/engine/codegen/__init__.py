"""From a vertex program in Python to the text of kernels: lowering, plan, text, cache."""
