"""A run for a model hub: ``model.safetensors``, ``config.json`` and a model card."""

import base64
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import load_array
from graphsys.core.checksums import digest
from graphsys.core.config import load_toml, to_toml
from graphsys.core.errors import ConfigError
from graphsys.core.remote.locations import Place
from graphsys.storage.manifest import checksum_of
from graphsys.storage.output_file import new_files, require_writable
from graphsys.storage.remote.fetching import run_folder as local_run
from graphsys.storage.remote.hub_folder import (
    CARD_NAME,
    SETTINGS_NAME,
    VERSION,
    WEIGHTS_NAME,
)
from graphsys.storage.runs.run_folder import (
    CONFIG_NAME,
    FORMAT_VERSION,
    GNN,
    check_files,
    read_content,
)
from graphsys.training.history import history

_ROWS: Final = re.compile(r"(rows|relations|globals)/.+\.npy")
_KINDS: Final = {
    "float32": "F32",
    "float64": "F64",
    "uint16": "U16",
    "int8": "I8",
    "int64": "I64",
}
_BITS: Final = {"bfloat16": "BF16", "float16": "F16"}


def export_hub(run: Place, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write a run as model hubs hold one, which all that takes a run takes too.

    The folder has the numbers that answer (rows and operators of embeddings, the kept
    weights of a network) as ``model.safetensors``, what else the run says as
    ``config.json``, and ``README.md``, a card whose metadata is YAML. Paths of this machine
    are left out: of the graph the folder's name is kept, and it is looked for in the
    working directory. States of optimizers stay behind, so that no training goes on.

    Args:
        run: The run's folder, of embeddings or of a network.
        out: The folder to write.
        overwrite: Replace these three files, where they are.

    Returns:
        The folder.

    Raises:
        ConfigError: There is no run, or a network has rows on disk.
        OutputExistsError: A file is there.
        StorageFullError: They cannot be written.
    """
    out, path = Path(out), local_run(run)
    targets = [out / name for name in (WEIGHTS_NAME, SETTINGS_NAME, CARD_NAME)]
    require_writable(*targets, overwrite=overwrite)
    try:
        content = read_content(path)
    except FileNotFoundError as err:
        raise ConfigError(
            f"{path} holds no run; expected the folder of a training"
        ) from err
    check_files(path, content["files"], content.get("checksums", {}))
    settings = _without_places(load_toml(path / CONFIG_NAME))
    kept = _kept_files(path, content, settings)
    with new_files(*targets) as (weights, config, card):
        if content.get("kind") == GNN:
            shutil.copyfile(path / kept[0], weights)
            files: dict[str, Any] = {kept[0]: None}
        else:
            files = _write_tensors(path, kept, weights, str(settings.get("row_dtype", "")))
        graph = Path(str(content["graph"]["path"])).name
        found = _run_text(content, kept, settings, graph)
        described = _described(path, content, settings, graph)
        stated = {
            **described,
            "settings": settings,
            "graphsys": {
                "format_version": VERSION,
                "files": files,
                "config": to_toml(settings),
                "run": found,
            },
        }
        config.write_text(json.dumps(stated, indent=1) + "\n", encoding="utf-8")
        card.write_text(_card(out.name, described, settings), encoding="utf-8")
    return out


def _without_places(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without paths of this machine."""
    found = {key: it for key, it in settings.items() if key != "init_from"}
    model = str(found.get("model", ""))
    if ".py" in model:
        found["model"] = model.rpartition("/")[2]
    return found


def _kept_files(
    path: Path, content: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[str]:
    """Return the files of a checkpoint that answers come from."""
    names = sorted(content["files"])
    if content.get("kind") != GNN:
        return [name for name in names if _ROWS.fullmatch(name)]
    if settings.get("learned_rows") == "disk":
        raise ConfigError(
            f"the run {path} has learned rows on disk, which are no weights; expected "
            "learned_rows memory"
        )
    for stem in ("best.", "weights."):
        found = [name for name in names if name.startswith(stem)]
        if found:
            return found[:1]
    raise ConfigError(f"the run {path} has no weights yet; train it further")


def _write_tensors(
    path: Path, names: list[str], to: Path, row_dtype: str
) -> dict[str, dict[str, str]]:
    """Write arrays of files as tensors; return which each is, and what is before it.

    References:
        The format: https://huggingface.co/docs/safetensors, a length, JSON, the numbers.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    arrays: list[npt.NDArray[Any]] = []
    files, end = {}, 0
    for name in names:
        array = load_array(path / name)
        kind = _KINDS[array.dtype.name]
        if kind == "U16":
            kind = _BITS.get(row_dtype, kind)
        tensor = re.sub(r"\.\d+\.npy$", "", name)
        begin, end = end, end + array.nbytes
        place = {"shape": list(array.shape), "data_offsets": [begin, end]}
        header[tensor] = {"dtype": kind, **place}
        with (path / name).open("rb") as stream:
            head = stream.read((path / name).stat().st_size - array.nbytes)
        files[name] = {"tensor": tensor, "head": base64.b64encode(head).decode()}
        arrays.append(array)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with to.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for array in arrays:
            stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return files


def _run_text(
    content: Mapping[str, Any], kept: list[str], settings: Mapping[str, Any], graph: str
) -> str:
    """Return ``run.json`` of the run that the hub's folder holds."""
    checksums = {it: content["checksums"][it] for it in kept if it in content["checksums"]}
    checksums[CONFIG_NAME] = digest(to_toml(settings).encode())
    found = {
        **content,
        "graph": {**content["graph"], "path": graph},
        "files": {it: content["files"][it] for it in kept},
        "checksums": checksums,
        "format_version": FORMAT_VERSION,
        "is_complete": True,
    }
    if content.get("kind") != GNN:
        found |= {"log_bytes": 0, "log_checksum": "", "warm": {}}
    return json.dumps({**found, "checksum": checksum_of(found)}, indent=1) + "\n"


def _described(
    path: Path, content: Mapping[str, Any], settings: Mapping[str, Any], graph: str
) -> dict[str, Any]:
    """Return what a reader of ``config.json`` and of the card wants to know."""
    known = history(path)
    split, best = str(settings.get("eval_split", "valid")), known.best
    found = {}
    if best is not None:
        for name, curve in known.curves.items():
            if name.startswith(f"{split}_") and best["epoch"] in dict(curve):
                found[name.removeprefix(f"{split}_")] = dict(curve)[best["epoch"]]
    is_network = content.get("kind") == GNN
    return {
        "library_name": "graphsys",
        "kind": GNN if is_network else "embedding",
        "model_type": settings.get("model" if is_network else "operator"),
        "task": settings.get("task") if is_network else "link_prediction",
        "graph": {
            "name": graph,
            **{key: content["graph"][key] for key in ("num_nodes", "num_edges")},
        },
        "epochs": content["epoch"],
        "evaluated_on": split if found else None,
        "metrics": found,
    }


def _card(name: str, found: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return the card: YAML between two lines of dashes, then Markdown.

    JSON is YAML, so that no name can break it.

    References:
        https://huggingface.co/docs/hub/model-cards#model-card-metadata
    """
    graph, task = found["graph"], str(found["task"]).replace("_", "-")
    metrics = [
        {"type": key, "name": f"{key} ({found['evaluated_on']})", "value": value}
        for key, value in found["metrics"].items()
    ]
    result = {
        "task": {"type": task, "name": task},
        "dataset": {"type": graph["name"], "name": graph["name"]},
        "metrics": metrics,
    }
    metadata = {
        "library_name": "graphsys",
        "license": "unknown",
        "pipeline_tag": "graph-ml",
        "tags": ["graph", task, str(found["model_type"])],
        "datasets": [graph["name"]],
        "metrics": list(found["metrics"]),
        "model-index": [{"name": name, "results": [result] if metrics else []}],
    }
    lines = [f"{key}: {json.dumps(value)}" for key, value in metadata.items()]
    rows = [f"| {it['name']} | {it['value']:.4g} |" for it in metrics]
    table = ["| metric | value |", "| --- | --- |", *rows] if rows else ["Not evaluated."]
    verb = found["kind"]
    about = (
        f"A run of `graphsys train {verb}`: {task} on `{graph['name']}` "
        f"({graph['num_nodes']:,} nodes, {graph['num_edges']:,} edges), "
        f"{found['epochs']} epochs."
    )
    return "\n".join(
        [
            "---",
            *lines,
            "---",
            "",
            f"# {name}",
            "",
            about,
            "",
            *table,
            "",
            _use(name, graph["name"]),
            "",
            "## Reproduce",
            "",
            "With these settings in `settings.toml`:",
            "",
            "```sh",
            f"graphsys train {verb} {graph['name']} -o run --config settings.toml",
            "```",
            "",
            "```toml",
            to_toml(settings).rstrip(),
            "```",
            "",
        ]
    )


def _use(name: str, graph: str) -> str:
    return (
        f"## Use\n\nWith the graph in the folder `{graph}` of the working directory:\n\n"
        f"```sh\ngraphsys evaluate {name}\ngraphsys nearest {name} NODE\n```"
    )
