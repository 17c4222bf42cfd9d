"""From the user's ids to numbers, and the dictionaries that keep them."""
