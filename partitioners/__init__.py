"""Partitioners: which partition of its type a node lives in."""

if __name__ == "partitioners":
    raise ImportError(
        "this is the source folder of graphsys.partitioners; take the repository root off sys.path"
    )
