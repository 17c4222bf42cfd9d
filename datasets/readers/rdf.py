"""RDF: N-Triples and N-Quads by lines; Turtle and RDF/XML by rdflib, as a whole.

Ids are IRIs without brackets, blank nodes with ``_:``, and literals as N-Triples writes
them (``"Bob"@en``): a literal is a node, and one line says how many triples have one. The
graph of a quad is the column ``graph``.

References:
    W3C, "RDF 1.1 N-Triples", "RDF 1.1 N-Quads", 2014.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import Any, Final

import pyarrow as pa

from graphsys.core.caller_warnings import note
from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, InputError
from graphsys.core.threads import map_in_order
from graphsys.core.types import EdgeType
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.files import InputFile, describe, text_file
from graphsys.datasets.readers.triples import TRIPLE
from graphsys.datasets.split_names import by_split
from graphsys.datasets.text.blocks import TextBlock, text_blocks
from graphsys.datasets.text.layout import show
from graphsys.datasets.text.prefetch import prefetch
from graphsys.storage.source import EdgeChunk, Source

CHUNK_ROWS: Final = 1 << 18
_IRI: Final = rb"<([^<>\"{}|^`\x00-\x20]*)>"
_BLANK: Final = rb"(_:[^\s<>\"]+)"
_LITERAL: Final = rb"(\"(?:[^\"\\\n\r]|\\.)*\"(?:\^\^<[^<>\s]*>|@[A-Za-z][A-Za-z0-9-]*)?)"
_LINE: Final = re.compile(
    rb"[ \t]*(?:"
    + _IRI
    + rb"|"
    + _BLANK
    + rb")[ \t]*"
    + _IRI
    + rb"[ \t]*(?:"
    + _IRI
    + rb"|"
    + _BLANK
    + rb"|"
    + _LITERAL
    + rb")[ \t]*(?:"
    + _IRI
    + rb"|"
    + _BLANK
    + rb")?[ \t]*\.[ \t]*(?:#.*)?\r?"
)
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_RDFLIB: Final = {
    ".ttl": "turtle",
    ".n3": "n3",
    ".rdf": "xml",
    ".owl": "xml",
    ".trig": "trig",
}
"""Not JSON-LD: it fetches what it names from the network."""


def _unescaped(field: bytes) -> bytes:
    """Replace numeric escapes by their characters; others stay as they are written."""
    if b"\\" not in field:
        return field

    def plain(match: re.Match[bytes]) -> bytes:
        digits = match[1] or match[2]
        return match[0] if digits is None else chr(int(digits, 16)).encode()

    return _ESCAPE.sub(plain, field)


class LinesSource(Source):
    """The triples or quads of files of lines."""

    def __init__(self, files: list[InputFile], options: ReadOptions) -> None:
        files = [text_file(file) for file in files]
        self.name = ", ".join(file.name for file in files)
        self.total_bytes = sum(file.num_bytes for file in files)
        self.is_directed = not options.is_undirected
        self._files = by_split(files)
        self._edge_type = options.edge_type or TRIPLE
        self._num_threads = options.num_threads
        self._has_graphs = any(base_name(file.path)[1] == ".nq" for file in files)

    def chunks(self) -> Iterator[EdgeChunk]:
        """Yield the triples in blocks.

        Raises:
            InputError: a line is no triple; or there is none.
        """
        rows = literals = 0
        for file, split in self._files:
            before = 0
            loaders: Any = text_blocks(file)
            if not file.has_pieces:
                loaders = prefetch(loaders)
            work = partial(_parse, self._edge_type, split, self._has_graphs)
            for chunk, lines, found, error in map_in_order(
                work, loaders, num_threads=self._num_threads
            ):
                if error:
                    raise InputError(f"{file.name}:{before + lines + 1}: {error}")
                before += lines
                rows += len(chunk.src)
                literals += found
                yield chunk
        if not rows:
            raise InputError(f"{self.name}: no triple in the file, expected at least one")
        warn_of_literals(self.name, literals, rows)


def _parse(
    edge_type: EdgeType, split: str, has_graphs: bool, load: Callable[[], TextBlock]
) -> tuple[EdgeChunk, int, int, str]:
    """Return a block's triples, its lines, its literals, and what is wrong with a line."""
    block = load()
    columns: tuple[list[bytes], ...] = ([], [], [], [])
    literals = 0
    error = ""
    lines = block.data.tobytes().split(b"\n")[:-1]
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None:
            if line.strip() and not line.lstrip().startswith(b"#"):
                error = (
                    f"found {show(line)}, expected a triple of N-Triples, <subject> "
                    "<predicate> <object> .; pass --format triples for three names"
                )
                lines = lines[:number]
                break
        else:
            src, blank, relation, iri, node, literal, graph, name = match.groups()
            fields = (src or blank, relation, iri or node or literal, graph or name or b"")
            for column, field in zip(columns, fields, strict=True):
                column.append(_unescaped(field or b""))
            literals += literal is not None
    try:
        words = [
            pa.array(column, pa.binary()).cast(pa.string()).dictionary_encode()
            for column in columns
        ]
    except pa.ArrowInvalid:
        words = [pa.array([], pa.string()).dictionary_encode()] * len(columns)
        lines = []
        error = (
            "a block from here on is not UTF-8; convert it, for example with "
            "iconv -f latin1 -t utf-8 FILE > NEW"
        )
    kept = {"relation": words[1]} | ({"graph": words[3]} if has_graphs else {})
    chunk = EdgeChunk(
        src=words[0],
        dst=words[2],
        edge_type=edge_type,
        split=split,
        columns=kept,
        bytes_read=block.bytes_read,
    )
    return chunk, len(lines), literals, error


def warn_of_literals(name: str, literals: int, triples: int) -> None:
    """Say how many triples end in a literal, which is a node here."""
    if literals:
        note(
            f"{name}: {literals} of {triples} triples have a literal as object, which "
            "becomes a node whose id begins with a quote; leave them out by grep -v "
            "'\"' FILE > NEW in N-Triples"
        )


class RdfSource(Source):
    """The triples of a file that rdflib has read."""

    def __init__(self, file: InputFile, triples: list[Any], options: ReadOptions) -> None:
        self.name, self.total_bytes = file.name, file.num_bytes
        self.is_directed = not options.is_undirected
        self._triples = triples
        self._edge_type = options.edge_type or TRIPLE

    def chunks(self) -> Iterator[EdgeChunk]:
        """Yield the triples, in the order of their ids."""
        literals = sum(triple[2].startswith('"') for triple in self._triples)
        for begin in range(0, len(self._triples), CHUNK_ROWS):
            src, relation, dst = (
                pa.array(column, pa.string()).dictionary_encode()
                for column in zip(*self._triples[begin : begin + CHUNK_ROWS], strict=True)
            )
            yield EdgeChunk(
                src=src, dst=dst, edge_type=self._edge_type, columns={"relation": relation}
            )
        warn_of_literals(self.name, literals, len(self._triples))


def open_rdf(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of N-Triples, N-Quads, Turtle or RDF/XML, by the files' names.

    Raises:
        InputError: a file holds no triples, or cannot be read.
        MissingDependencyError: a file needs rdflib, which is not installed.
        ConfigError: options go with columns of text.
    """
    if options.columns or options.roles or options.skip or options.separator:
        raise ConfigError("RDF has no columns; leave out columns, separator and skip")
    kinds = {_RDFLIB.get(base_name(file.path)[1]) for file in files}
    if kinds == {None}:
        return LinesSource(files, options)
    if len(files) != 1:
        raise InputError(f"{files[1].name}: a second file of RDF, expected one; join them")
    rdflib = require("rdflib", extra="formats")
    kind = kinds.pop()
    store = rdflib.Dataset(default_union=True) if kind == "trig" else rdflib.Graph()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store.parse(BytesIO(files[0].read_all()), format=kind)
    except Exception as err:  # a parser of others meets damage with any error
        raise InputError(
            f"{files[0].name}: rdflib cannot read it: {describe(err)[:200]}; correct it"
        ) from err
    triples = sorted(
        tuple(map(partial(_text, rdflib), triple)) for triple in store.triples((None,) * 3)
    )
    if not triples:
        raise InputError(f"{files[0].name}: no triple in the file, expected at least one")
    return RdfSource(files[0], triples, options)


def _text(rdflib: Any, term: Any) -> str:
    """Return the id of a term, as N-Triples would have it."""
    return str(term) if isinstance(term, rdflib.URIRef) else str(term.n3())


formats.register("rdf")(
    Format(
        open=open_rdf,
        suffixes=(".nt", ".nq", *_RDFLIB),
        about="RDF: N-Triples and N-Quads by lines; Turtle, RDF/XML by rdflib",
    )
)
