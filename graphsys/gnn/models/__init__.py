"""Networks: a model says its input, its layers and its output."""
