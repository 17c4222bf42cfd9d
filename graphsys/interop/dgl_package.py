"""DGL itself, imported with its PyTorch backend, so that it does not ask which to take."""

import os

from graphsys.core.deps import require

os.environ.setdefault("DGLBACKEND", "pytorch")
dgl = require("dgl", extra="dgl")
