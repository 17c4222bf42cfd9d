"""``graph.json``: what a store holds, and the checksum of every file it is made of."""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from graphsys.core.errors import CorruptStoreError, InvalidGraphError
from graphsys.core.plain_files import parse_json, read_plain
from graphsys.core.types import DEFAULT_SPLIT, EdgeType
from graphsys.storage.delta_entry import DeltaEntry, check_deltas
from graphsys.storage.manifest_check import build, expect

FORMAT_VERSION: Final = 4
DELTA_FORMAT_VERSION: Final = 3
"""What a store with deltas says: who reads on without them reads something else."""
TIME_UNITS: Final = {
    "d": "days",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
"""Units that times of edges may have, and what they are called."""
_FIRST_VERSION = 1  # what a store says that needs no more
MANIFEST_NAME: Final = "graph.json"
ID_TYPES: Final = ("int64", "large_string")
MAX_PARTITIONS: Final = 4096
"""Of a node type."""
_MAX_COMPONENT = 200
_CUT_COMPONENT = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of the store.

    Attributes:
        path: Relative to the graph's folder, with forward slashes.
        rows: Rows of the Arrow file.
        bytes: Size of the file.
        checksum: ``sha256:`` and the hash of the whole file, in hex.
        xxh3: ``xxh3:`` and the fast checksum of the whole file, for readers; none in
            stores from before there was one.
    """

    path: str
    rows: int
    bytes: int
    checksum: str
    xxh3: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTypeEntry:
    """One node type.

    Attributes:
        id_type: "int64" or "large_string".
        offsets: First number of every partition, and the number of nodes, ``[P + 1]``.
        columns: Arrow types of the columns of the node files, by name.
        features: ``{"dim": d, "dtype": "float32"}`` by name; dim 0 for bags; where rows
            are shared also ``stored_rows``, those of all files.
        splits: Nodes per value of the column ``split``.
    """

    id_type: str
    offsets: list[int]
    columns: dict[str, str] = field(default_factory=dict)
    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all partitions."""
        return self.offsets[-1]

    @property
    def num_partitions(self) -> int:
        """Number of partitions."""
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTypeEntry:
    """One edge type.

    Attributes:
        src_type: Node type of the sources.
        relation: Name of the relation in (src_type, relation, dst_type).
        dst_type: Node type of the destinations.
        directed: False where an edge stands for both directions and is stored once.
        num_edges: Stored edges per split.
        columns: Arrow types of the further columns of the buckets, by name.
        relations: Values of the column ``relation`` in the order of their codes.
        duplicates: Edges found beyond the first of each (src, dst, relation).
        self_loops: Edges found from a node to itself.
        index_fingerprint: What the index was built from: the hash of its buckets'
            checksums.
        time_unit: Unit of the column ``time``: "d", "s", "ms", "us" or "ns" since 1970,
            UTC; "" where the user's integers are in a unit of their own.
    """

    src_type: str
    relation: str
    dst_type: str
    directed: bool
    num_edges: dict[str, int] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    relations: list[str] | None = None
    duplicates: int = 0
    self_loops: int = 0
    index_fingerprint: str = ""
    time_unit: str = ""

    @property
    def edge_type(self) -> EdgeType:
        """The triple of source type, relation and destination type."""
        return EdgeType(self.src_type, self.relation, self.dst_type)

    @property
    def counting_split(self) -> str:
        """The split that has indexes: ``train``, or the only one where it is another."""
        return next(iter(self.num_edges)) if len(self.num_edges) == 1 else DEFAULT_SPLIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything ``graph.json`` says.

    Attributes:
        generation: Number of the generation that this manifest commits.
        node_types: Node types by name.
        edge_types: Edge types by name.
        partitioning: Method, seed and quality of the partitioning.
        order: Order of the nodes inside a partition, by node type (``numbering.ORDERS``).
        files: All files of the generation.
        source: What the graph was made from, for people.
        format_version: Version of the layout.
        deltas: What was appended since, by number; counts, offsets and relations above
            are those after the last.
    """

    generation: int
    node_types: dict[str, NodeTypeEntry]
    edge_types: dict[str, EdgeTypeEntry]
    partitioning: dict[str, Any]
    order: dict[str, str]
    files: list[FileEntry]
    source: str = ""
    format_version: int = _FIRST_VERSION
    deltas: list[DeltaEntry] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        """A hash over all files' checksums: equal for equal content."""
        lines = sorted(
            f"{entry.path.partition('/')[2]} {entry.checksum}" for entry in self.files
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def to_json(self) -> str:
        """Return the text of ``graph.json``, its own checksum included."""
        content = asdict(replace(self, files=[]))
        # files are most of it, and flat: they are not copied field by field
        names = FileEntry.__slots__
        content["files"] = [{k: getattr(it, k) for k in names} for it in self.files]
        if not self.deltas:  # as stores said it before there were any
            del content["deltas"]
        for entry in content["edge_types"].values():
            if not entry["time_unit"]:
                del entry["time_unit"]
        content["format"] = "graphsys"
        content["checksum"] = checksum_of(content)
        files, content["files"] = content["files"], []
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=True)
        return text.replace('\n "files": []', f'\n "files": {_lines_of(files)}', 1) + "\n"

    @staticmethod
    def read(path: Path) -> "Manifest":
        """Read and check ``graph.json`` of the graph in the folder ``path``.

        Raises:
            InvalidGraphError: the folder is missing or holds no graph.
            CorruptStoreError: the manifest is cut short, altered, of a newer format, or
                names a file outside the folder.
        """
        where = path / MANIFEST_NAME
        try:
            text = read_plain(where).decode()
        except (FileNotFoundError, NotADirectoryError):
            found = "does not exist" if not path.exists() else f"has no {MANIFEST_NAME}"
            raise InvalidGraphError(
                f"{path} {found}; expected a folder made by `graphsys ingest` or "
                "`graphsys dataset build`"
            ) from None
        except UnicodeDecodeError as err:
            raise CorruptStoreError(f"{where} is not UTF-8 text; ingest again") from err
        except OSError as err:
            raise CorruptStoreError(
                f"{where} cannot be read: {(err.strerror or str(err)).lower()}"
            ) from err
        return _parse(text, where)


@functools.lru_cache(maxsize=8)
def _parse(text: str, where: Path) -> Manifest:
    """Return what a text says; one command reads the same again and again."""
    remedy = "ingest again or restore the file"
    try:
        content = parse_json(text)
    except ValueError as err:
        raise CorruptStoreError(f"{where} is not valid JSON ({err}); {remedy}") from err
    if not isinstance(content, dict) or "format_version" not in content:
        raise CorruptStoreError(f"{where} has no format_version; {remedy}")
    version = content["format_version"]
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise CorruptStoreError(
            f"{where} has format version {version}, this graphsys reads up to "
            f"{FORMAT_VERSION}; upgrade graphsys"
        )
    stated = content.pop("checksum", None)
    if stated != checksum_of(content):
        raise CorruptStoreError(f"{where} does not match its own checksum; {remedy}")
    content.pop("format", None)
    try:
        manifest: Manifest = build(Manifest, content)
        _check_sense(manifest)
    except ValueError as err:
        raise CorruptStoreError(f"{where}: {err}; {remedy}") from err
    for entry in manifest.files:
        check_path(entry.path, where)
    return manifest


def _check_sense(manifest: Manifest) -> None:
    """Check what types alone do not say: counts, references, repeated files.

    Raises:
        ValueError: something cannot be; the message starts with the place.
    """
    expect(manifest.generation >= 1, "generation", manifest.generation, "1 or more")
    for name, node in manifest.node_types.items():
        where = f"node_types.{name}"
        expect(node.id_type in ID_TYPES, f"{where}.id_type", node.id_type, str(ID_TYPES))
        offsets = node.offsets
        ascends = len(offsets) > 1 and all(a <= b for a, b in pairwise(offsets))
        is_right = ascends and offsets[0] == 0 and offsets[-1] < 2**63
        expect(is_right, f"{where}.offsets", offsets, "ascending numbers from 0")
        most, found = MAX_PARTITIONS, len(offsets) - 1
        expect(found <= most, f"{where}.offsets", f"{found} partitions", f"at most {most}")
        for feature, entry in node.features.items():
            good = isinstance(entry.get("dim"), int) and isinstance(entry.get("dtype"), str)
            expect(good, f"{where}.features.{feature}", entry, "dim and dtype")
    for name, edge in manifest.edge_types.items():
        for end in (edge.src_type, edge.dst_type):
            expect(end in manifest.node_types, f"edge_types.{name}", end, "a node type")
        for split, count in edge.num_edges.items():
            expect(count >= 0, f"edge_types.{name}.num_edges.{split}", count, "0 or more")
        unit, units = edge.time_unit, ("", *TIME_UNITS)
        expect(unit in units, f"edge_types.{name}.time_unit", unit, f"one of {units}")
    check_deltas(
        manifest.deltas,
        {name: node.num_partitions for name, node in manifest.node_types.items()},
        {name: edge.num_edges for name, edge in manifest.edge_types.items()},
    )
    paths = [entry.path for entry in manifest.files]
    repeated = sorted(paths)
    for path, following in pairwise(repeated):
        expect(path != following, "files", path, "every file once")
    for file in manifest.files:
        where = f"files.{file.path}"
        for size in (file.bytes, file.rows):
            expect(0 <= size < 2**63, where, size, "bytes and rows from 0 to 2**63 - 1")


def _lines_of(files: list[dict[str, Any]]) -> str:
    """Return what ``json.dumps`` with an indent of 1 makes of files, much faster."""
    if not files:
        return "[]"
    encode = json.JSONEncoder(
        sort_keys=True, ensure_ascii=True, separators=(",\n   ", ": ")
    ).encode  # flat objects: an item separator is a line
    items = (f"  {{\n   {encode(it)[1:-1]}\n  }}" for it in files)
    return "[\n" + ",\n".join(items) + "\n ]"


def check_path(path: str, where: Path) -> None:
    """Refuse a path that leaves the graph's folder.

    Raises:
        CorruptStoreError: the path is absolute or contains ``..``.
    """
    pure = PurePosixPath(path)
    is_odd = "\\" in path or not path.isprintable() or not pure.parts
    if pure.is_absolute() or ".." in pure.parts or is_odd:
        raise CorruptStoreError(
            f"{where} names the file {path!r}, which is not inside the graph's folder; "
            "do not use this graph"
        )


def needed_version(
    node_types: Iterable[NodeTypeEntry], edge_types: Iterable[EdgeTypeEntry] = ()
) -> int:
    """Return the lowest format version that can say what a store without deltas holds."""
    if any(entry.time_unit for entry in edge_types):
        return FORMAT_VERSION
    entries = [entry for node in node_types for entry in node.features.values()]
    return 2 if any("stored_rows" in entry for entry in entries) else _FIRST_VERSION


def file_name(name: str) -> str:
    """Return a type's or split's name as one safe component of a path.

    Percent-encoded UTF-8; a name of dots alone has them encoded too, the empty name is
    ``%``, and one too long for a file system is cut and ends in ``%`` and a hash. No two
    names share a component.
    """
    quoted = quote(name, safe=" +,=@", errors="surrogatepass")
    if not quoted.strip("."):
        return quoted.replace(".", "%2E") or "%"
    if len(quoted) <= _MAX_COMPONENT:
        return quoted
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{quoted[:_CUT_COMPONENT]}%-{digest[:32]}"


def node_file(generation: int, node_type: str, part: int) -> str:
    """Return the path of a partition's node table."""
    return f"gen-{generation}/nodes/{file_name(node_type)}/part-{part}.arrow"


def feature_file(generation: int, node_type: str, name: str, part: int) -> str:
    """Return the path of a partition's features."""
    folder = f"gen-{generation}/features/{file_name(node_type)}/{file_name(name)}"
    return f"{folder}/part-{part}.arrow"


def bucket_file(generation: int, edge_type: str, split: str, i: int, j: int) -> str:
    """Return the path of a bucket."""
    folder = f"gen-{generation}/edges/{file_name(edge_type)}/{file_name(split)}"
    return f"{folder}/bucket-{i}-{j}.arrow"


def index_file(generation: int, edge_type: str, direction: str, part: int) -> str:
    """Return the path of a partition's CSR (``out``) or CSC (``in``)."""
    return f"gen-{generation}/index/{file_name(edge_type)}/{direction}-{part}.arrow"


def delta_folder(generation: int, number: int) -> str:
    """Return the folder of a delta, relative to the graph's."""
    return f"gen-{generation}/deltas/{number}"


def in_delta(path: str, number: int) -> str:
    """Return where a file of a generation is in a delta of it."""
    generation, _, rest = path.partition("/")
    return f"{generation}/deltas/{number}/{rest}"


def added_file(generation: int, number: int, edge_type: str, split: str) -> str:
    """Return the path of the edges that a delta added."""
    folder = f"{delta_folder(generation, number)}/edges/{file_name(edge_type)}"
    return f"{folder}/{file_name(split)}.arrow"


def removed_file(generation: int, number: int, edge_type: str, split: str) -> str:
    """Return the path of the edges that a delta removed."""
    folder = f"{delta_folder(generation, number)}/deletions/{file_name(edge_type)}"
    return f"{folder}/{file_name(split)}.arrow"


def id_table_file(generation: int, number: int, node_type: str) -> str:
    """Return the path of the table from ids to numbers of a type's first partitions."""
    return f"{delta_folder(generation, number)}/ids/{file_name(node_type)}.arrow"


def delta_of(manifest: Manifest, node_type: str, part: int) -> int:
    """Return the number of the delta whose new nodes form a partition; 0 for none."""
    for delta in reversed(manifest.deltas):
        own = delta.partitions.get(node_type)
        if own == part:
            return delta.number
        if own is not None and own < part:
            break
    return 0


def node_path(manifest: Manifest, node_type: str, part: int) -> str:
    """Return the path of a partition's node table, in a delta or not."""
    path = node_file(manifest.generation, node_type, part)
    number = delta_of(manifest, node_type, part)
    return in_delta(path, number) if number else path


def feature_path(manifest: Manifest, node_type: str, name: str, part: int) -> str:
    """Return the path of a partition's features, in a delta or not."""
    path = feature_file(manifest.generation, node_type, name, part)
    number = delta_of(manifest, node_type, part)
    return in_delta(path, number) if number else path


def before_deltas(manifest: Manifest) -> Manifest:
    """Return the manifest of the generation as it was written, before any append."""
    return after_deltas(manifest, 0)


def after_deltas(manifest: Manifest, count: int) -> Manifest:
    """Return the manifest as it was after the first ``count`` deltas."""
    later = manifest.deltas[count:]
    if not later:
        return manifest
    marks = tuple(f"{delta_folder(manifest.generation, it.number)}/" for it in later)
    first_version = needed_version(
        manifest.node_types.values(), manifest.edge_types.values()
    )
    return replace(
        manifest,
        node_types={
            name: _first_nodes(later, name, node)
            for name, node in manifest.node_types.items()
        },
        edge_types={
            name: _first_edges(later, name, edge)
            for name, edge in manifest.edge_types.items()
        },
        files=[entry for entry in manifest.files if not entry.path.startswith(marks)],
        format_version=manifest.format_version if count else first_version,
        deltas=manifest.deltas[:count],
    )


def _first_nodes(
    later: Sequence[DeltaEntry], name: str, node: NodeTypeEntry
) -> NodeTypeEntry:
    parts = [d.partitions[name] for d in later if name in d.partitions]
    if not parts:
        return node
    offsets = node.offsets[: parts[0] + 1]
    features, splits = {}, dict(node.splits)
    for feature, entry in node.features.items():
        features[feature] = dict(entry)
        if "stored_rows" in entry:  # rows of deltas are not shared
            features[feature]["stored_rows"] -= node.num_nodes - offsets[-1]
    for delta in later:
        for split, count in delta.node_splits.get(name, {}).items():
            splits[split] -= count
    splits = {split: count for split, count in splits.items() if count > 0}
    return replace(node, offsets=offsets, features=features, splits=splits)


def _first_edges(
    later: Sequence[DeltaEntry], name: str, edge: EdgeTypeEntry
) -> EdgeTypeEntry:
    num_edges, new = dict(edge.num_edges), 0
    for delta in later:
        new += delta.relations.get(name, 0)
        for split in num_edges:
            num_edges[split] -= delta.added.get(name, {}).get(split, 0)
            num_edges[split] += delta.removed.get(name, {}).get(split, 0)
    relations = edge.relations
    if relations is not None and new:
        relations = relations[: len(relations) - new]
    return replace(edge, num_edges=num_edges, relations=relations)


def checksum_of(content: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest's content, the field ``checksum`` left out."""
    body = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
