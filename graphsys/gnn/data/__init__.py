"""What a batch is made of: labels, pairs, sampled rows of messages, features."""
