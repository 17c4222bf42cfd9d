"""What embeddings reach on the field's data sets, beside what was published."""
