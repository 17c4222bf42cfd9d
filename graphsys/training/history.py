"""What a run's folder says of its training: its curves, its best epoch, how to go on."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.core.config import load_toml
from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.core.notebook.figures import new_axes
from graphsys.core.notebook.tables import fields_table
from graphsys.core.remote.locations import Location, Place, is_remote, shown
from graphsys.storage.folder_kinds import CONFIG_NAME, RUN_NAME
from graphsys.storage.manifest import MANIFEST_NAME
from graphsys.storage.remote.fetching import read_head
from graphsys.storage.remote.hub_folder import is_hub_folder, unpacked_anew
from graphsys.storage.runs.remote_checkpoint import settings_folder
from graphsys.storage.runs.run_folder import GNN, read_content

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

_HELD_OUT = "held_out_loss"
_LOWER_IS_BETTER = ("loss", "mr", _HELD_OUT)
Curve = Sequence[tuple[int, float]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class History:
    """A training as its run has it.

    Attributes:
        kind: ``embedding`` or ``gnn``.
        content: What ``run.json`` says.
        settings: What ``config.toml`` says.
        curves: By name, such as ``loss`` and ``valid_mrr``: epochs, and what was measured
            after each.
    """

    kind: str
    content: Mapping[str, Any]
    settings: Mapping[str, Any]
    curves: Mapping[str, Curve]

    @property
    def best(self) -> dict[str, Any] | None:
        """``metric``, ``value`` and ``epoch`` of the best evaluation; None without any."""
        content, monitor = self.content, str(self.settings.get("monitor", "mrr"))
        name = monitor if monitor == _HELD_OUT else f"{self._split}_{monitor}"
        if monitor == "metric":
            name = next(reversed([*self.curves]), "")
        if name not in self.curves:
            name = f"{self._split}_mrr"  # which every evaluation of embeddings has
        points = {epoch: it for epoch, it in self.curves.get(name, ()) if it == it}
        if not points:
            return None
        chosen = content.get("best", {}).get("epoch") or content.get("best_epoch")
        if chosen not in points:
            choose = min if monitor in _LOWER_IS_BETTER else max
            chosen = choose(points, key=points.__getitem__)  # the first of equal ones
        return {"metric": name, "value": points[chosen], "epoch": chosen}

    def table(self) -> "pa.Table":
        """Return ``epoch`` and a column per curve, null where nothing was measured."""
        import pyarrow as pa

        epochs = sorted({epoch for curve in self.curves.values() for epoch, _ in curve})
        columns: dict[str, Any] = {"epoch": pa.array(epochs, pa.int64())}
        for name, curve in self.curves.items():
            at = dict(curve)
            columns[name] = pa.array([at.get(it) for it in epochs], pa.float64())
        return pa.table(columns)

    def plot(self, *, axes: "Axes | None" = None) -> "Axes":
        """Draw the curves over the epochs by matplotlib (extra ``plot``).

        Args:
            axes: Where to draw the losses; axes of a new figure by default.

        Returns:
            The axes of the losses; evaluations have an axis of their own on the right. A
            point marks the best one.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        require("matplotlib", extra="plot")
        left: Any = new_axes(6.0, 3.6) if axes is None else axes
        right: Any = None
        for color, (name, curve) in enumerate(self.curves.items()):
            if not curve:
                continue
            if not name.endswith("loss") and right is None:
                right = left.twinx()
                right.set_ylabel("evaluation")
            at = left if name.endswith("loss") else right
            epochs, values = zip(*curve, strict=True)
            at.plot(epochs, values, color=f"C{color % 10}", label=name)
            if (best := self.best) and best["metric"] == name:
                at.plot([best["epoch"]], [best["value"]], "o", color=f"C{color % 10}")
        lines = [*left.lines, *(right.lines if right is not None else ())]
        named = [line for line in lines if not line.get_label().startswith("_")]
        left.legend(handles=named)
        left.set(xlabel="epoch", ylabel="loss")
        return left  # type: ignore[no-any-return]

    @property
    def _split(self) -> str:
        return str(self.settings.get("eval_split", "valid"))


def history(run: Place) -> History:
    """Read the history of a run, of embeddings or of a network.

    Args:
        run: Its folder, one for a model hub, or ``s3://...``.

    Raises:
        ConfigError: There is no run.
        CorruptStoreError: It cannot be read.
    """
    if not is_run(run):
        raise ConfigError(
            f"{run} holds no run (no {RUN_NAME}); expected what `graphsys train` writes"
        )
    is_of_hub = not is_remote(run) and is_hub_folder(Path(run))
    opened = unpacked_anew(Path(run), head_only=True) if is_of_hub else settings_folder(run)
    with opened as path:  # what was trained is neither fetched nor unpacked
        content, settings = read_content(path), load_toml(path / CONFIG_NAME)
    is_network = content.get("kind") == GNN
    losses = content.get("losses", [])
    curves: dict[str, Curve] = {}
    curves["loss"] = [(k, float(it)) for k, it in enumerate(losses, 1)]
    for name, each in content.get("task_losses", {}).items():
        curves[f"{name}_loss"] = [(k, float(it)) for k, it in enumerate(each, 1)]
    measured = _of_network if is_network else _of_embedding
    curves |= measured(content, str(settings.get("eval_split", "valid")))
    kind = GNN if is_network else "embedding"
    return History(kind=kind, content=content, settings=settings, curves=curves)


def _of_network(content: Mapping[str, Any], split: str) -> dict[str, Curve]:
    names = [it.removeprefix("valid_") for it in content["metrics"] if it[:6] == "valid_"]
    metric = next((it for it in names if it != "loss"), "metric")
    rows = content.get("history", [])
    if not rows:
        return {}
    return {
        f"{split}_{name}": [(int(row[0]), float(row[place])) for row in rows]
        for place, name in ((1, "loss"), (2, metric))
    }


def _of_embedding(content: Mapping[str, Any], split: str) -> dict[str, Curve]:
    return {
        name: [(int(epoch), float(value)) for epoch, value in found]
        for name, found in content["metrics"].items()
        if isinstance(found, list) and (name == _HELD_OUT or name.startswith(f"{split}_"))
    }


def is_run(place: Place) -> bool:
    """Tell whether a folder or a location holds a run, and no graph."""
    if is_remote(place):
        return read_head(Location.parse(place), RUN_NAME) is not None
    path = Path(place)
    if (path / MANIFEST_NAME).exists():
        return False
    return (path / RUN_NAME).exists() or is_hub_folder(path)


def run_info(run: Place) -> dict[str, Any]:
    """Return what a run is, as ``graphsys info RUN --json`` prints it.

    Returns:
        ``kind`` (``embedding`` or ``gnn``), ``model``, ``graph`` (``path``, ``num_nodes``,
        ``num_edges``), ``epochs`` (completed), ``epochs_planned``, ``is_complete``,
        ``seconds`` of training, the last ``loss``, ``best`` (``metric``, ``value``,
        ``epoch``; None without evaluations), ``bytes`` of the checkpoint, ``settings`` and
        the command that goes on, as ``go_on``; None of a folder for a model hub, which has
        no states of optimizers.

    Raises:
        ConfigError: There is no run.
        CorruptStoreError: It cannot be read.
    """
    found = history(run)
    content, settings = found.content, found.settings
    graph = content["graph"]
    model = settings.get("model", "")
    if found.kind == "embedding":
        model = f"{settings.get('operator')} {settings.get('comparator')}"
    losses = found.curves["loss"]
    return {
        "kind": found.kind,
        "model": model,
        "graph": {name: graph.get(name) for name in ("path", "num_nodes", "num_edges")},
        "epochs": content["epoch"],
        "epochs_planned": settings.get("epochs"),
        "is_complete": bool(content.get("is_complete")),
        "seconds": content.get("seconds", 0.0),
        "loss": losses[-1][1] if losses else None,
        "best": found.best,
        "bytes": sum(content.get("files", {}).values()),
        "settings": settings,
        "go_on": _how_to_go_on(found, run),
    }


def run_table(run: Place) -> str:
    """Return what a notebook shows of a run: a table as HTML."""
    info = run_info(run)
    best = info["best"] or {}
    facts = {
        "model": info["model"],
        "graph": str(info["graph"]["path"]).rstrip("/").rpartition("/")[2],
        "epochs": info["epochs"],
        "epochs planned": info["epochs_planned"],
        "seconds": info["seconds"],
        "loss": info["loss"],
        f"best {best.get('metric', '')}": best.get("value"),
        "bytes": info["bytes"],
    }
    return fields_table(str(run), facts)


def _how_to_go_on(found: History, run: Place) -> str | None:
    """Return the command that trains more of a run, where there is one."""
    if not is_remote(run) and is_hub_folder(Path(run)):
        return None
    content, settings = found.content, found.settings
    graph = shlex.quote(str(content["graph"]["path"]))
    place = shlex.quote(shown(str(run)))
    command = f"graphsys train {found.kind} {graph} -o {place} --resume"
    epoch, planned = content["epoch"], int(settings.get("epochs", 1))
    if found.kind == GNN:
        patience, best = settings.get("patience", 0), content.get("best_epoch", 0)
        if best and 0 < patience <= epoch - best and epoch < planned:
            return f"{command} --set patience=0"
    is_over = content.get("is_stopped") or epoch >= planned
    best_epoch = content.get("best", {}).get("epoch", epoch)
    if content.get("is_complete") and is_over and best_epoch != epoch:
        same = "" if is_remote(run) else f" --config {place}/{CONFIG_NAME}"
        return f"graphsys train embedding {graph} -o NEW{same} --set init_from={place}"
    return command if epoch < planned else f"{command} --set epochs={2 * planned}"
