"""The training of embeddings.

``api.train`` checks and builds, ``trainer`` loops over buckets.
"""
