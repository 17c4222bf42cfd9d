"""``python -m graphsys``: the command line."""

import sys

from graphsys.cli.main import main

sys.exit(main())
