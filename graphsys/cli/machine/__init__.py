"""What commands tell of machines: this one, and those that a graph would take."""
