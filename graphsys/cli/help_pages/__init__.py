"""What --help shows: of verbs, and of the algorithms of ``graphsys run``."""
