"""What a notebook shows: tables of results, and axes to draw on."""
