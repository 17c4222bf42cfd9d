"""What happens around the loop: evaluation, early stopping, warm starts, checkpoints."""
