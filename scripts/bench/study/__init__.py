"""The twelve applications study: the paper's findings as statistics over a sweep."""
