"""Views of a store whose partitions are seen in groups."""
