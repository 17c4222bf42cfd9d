"""Where the time went: events, a SIMT model, and reports of them."""
