"""The report as a page and as text."""
