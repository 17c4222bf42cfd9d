"""A trained network in use: opened, evaluated, asked for predictions."""
