"""Messages among workers: what is sent, how it is written, what carries it."""
