"""Questions to trained rows: nearest nodes, missing ends of triples, a picture."""
