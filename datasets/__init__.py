"""Readers, recipes and generators: whatever graph a user has, as a source for ingest."""

if __name__ == "datasets":
    raise ImportError(
        "this is the source folder of graphsys.datasets; take the repository root off sys.path"
    )
