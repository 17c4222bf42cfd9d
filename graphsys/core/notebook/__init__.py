"""What a notebook shows: tables of results, and how far work is."""
