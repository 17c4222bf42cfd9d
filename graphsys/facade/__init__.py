"""The graph that users open: a reader of a store with views, parts and conversions."""
