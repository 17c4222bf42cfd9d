"""The engine: vertex programs and the algorithms beside them."""
