"""Files that hold no lines of columns, whatever their names say.

People rename files, and save the page that a server sent instead of the data. Each kind
is known by its first bytes, and the message has the command that leads on.
"""

import json
import re
from typing import Final

from graphsys.core.errors import InputError
from graphsys.datasets.roles import PAIRS

_UNPACK: Final = "unpack it and name the files in it"
_BYTES: Final = (
    (b"PAR1", "a Parquet file", "pass --format parquet"),
    (b"ARROW1", "an Arrow file", "pass --format arrow"),
    (
        b"SQLite format 3\x00",
        "a database of SQLite",
        (
            "write its table of edges, sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > "
            "NEW.csv (sqlite3 FILE .tables lists them)"
        ),
    ),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "write its edges as Parquet or CSV"),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip", _UNPACK),
    (b"Rar!\x1a\x07", "an archive of RAR", _UNPACK),
    (b"%PDF-", "a PDF", "fetch the data that it describes"),
    (b"\x89PNG\r\n", "a picture", "fetch the data that it shows"),
    (b"\xff\xd8\xff", "a picture", "fetch the data that it shows"),
    (b"GIF8", "a picture", "fetch the data that it shows"),
    (
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS, not the data",
        "fetch the data, git lfs pull in its repository",
    ),
    (b"%%MatrixMarket", "a matrix of MatrixMarket", "pass --format mtx"),
    (b">>graph6<<", "a graph in the format graph6", "convert it with NetworkX"),
)
_JSON: Final = (
    "pass --format json if it holds nodes and links, else name the keys of both ends, "
    "jq -r '{items}[.{src},.{dst}]|@tsv' FILE > NEW.tsv"
)
_GRAPH: Final = "pass --format json, which reads nodes and links"
_PATTERNS: Final = (
    (rb"(?i)\s*<!doctype html|\s*<html", "a web page", "fetch the data that it links to"),
    (rb"(?s)\s*<.{,2000}<graphml", "a graph in GraphML", "pass --format graphml"),
    (rb"(?s)\s*<.{,2000}<gexf", "a graph in GEXF", "pass --format gexf"),
    (rb"(?i)\s*\*(vertices|network)\s", "a network of Pajek", "pass --format pajek"),
    (rb"(?s)(\s*creator[^\n]*\n)?\s*graph\s*\[", "a graph in GML", "pass --format gml"),
    (
        rb"(?i)\s*(strict\s+)?(di)?graph\b[^\n{\[]{,200}\{",
        "a graph of Graphviz",
        "write it as GML, gv2gml FILE > NEW.gml (of Graphviz)",
    ),
    (
        rb"(?i)dl\s+n\s*=",
        "a network of UCINET",
        "write it as GraphML, for example by igraph",
    ),
    (
        rb"(?i)(--[^\n]*\n|/\*[^\n]*\n|\s)*(insert into|create table|drop table) ",
        "statements of SQL",
        "load it into a database and write its table of edges as CSV",
    ),
    (rb"@\w+\{[^,\n]*,\s*\n", "a bibliography of BibTeX", "write its references as CSV"),
)
_ZEROS: Final = "bytes 0 in text", "remove them, tr -d '\\000' < FILE > NEW"
_UTF16: Final = 8
"""Letters that have a zero byte beside each before the text is UTF-16 without its mark."""


def refuse_foreign(name: str, head: bytes, *, has_texts: bool = False) -> None:
    """Refuse a file whose beginning shows that it holds no lines of columns.

    Args:
        name: The file, for the message.
        head: Its first bytes, decompressed, without a byte order mark.
        has_texts: Whether bytes 0 in text are let pass, which names in real tables have.

    Raises:
        InputError: it is of another kind; names the kind and what leads on.
    """
    found = _kind(head)
    if found is not None and not (has_texts and found == _ZEROS):
        what, remedy = found
        raise InputError(f"{name}:1: found {what}, expected lines of columns; {remedy}")


def _kind(head: bytes) -> tuple[str, str] | None:
    """Return what a file is that holds no lines, and what leads on; or None."""
    for magic, what, remedy in _BYTES:
        if head.startswith(magic):
            return what, remedy
    if head.startswith(b"PK\x03\x04"):
        if b"[Content_Types].xml" in head or b"mimetype" in head[:64]:
            return "a workbook or document", "save the sheet as CSV"
        if b".npy" in head[:256]:
            return "arrays of NumPy", "pass --format npz"
        return "a zip archive", f"give it a name that ends with .zip, or {_UNPACK}"
    for pattern, what, remedy in _PATTERNS:
        if re.match(pattern, head):
            return what, remedy
    if re.match(rb"\s*<\?xml", head):
        return "XML", "name its format with --format (graphml, gexf, rdf)"
    return json_kind(head) or _records(head) or _wide(head)


def _records(head: bytes) -> tuple[str, str] | None:
    """Return that an edge is several lines ``KEY:value``, as SNAP's wiki-RfA; or None."""
    found = re.match(rb"(?:[A-Za-z]{1,20}:[^\r\n]*\r?\n){2,}\r?\n", head)
    if found is None:
        return None
    keys = re.findall(r"(?m)^([A-Za-z]{1,20}):", found[0].decode(errors="replace"))
    again = head[found.end() :].lstrip(b"\r\n").startswith(f"{keys[0]}:".encode())
    if not again or len(set(keys)) < len(keys):
        return None
    (src, first), (dst, second) = ((key, len(key) + 2) for key in keys[:2])
    prints = (
        f'{{sub(/\\r$/, "")}} /^{src}:/{{s=substr($0,{first})}} '
        f'/^{dst}:/{{print s"\\t"substr($0,{second})}}'
    )
    return (
        f"records of lines {', '.join(keys[:4])}",
        f"write both ends on a line, awk '{prints}' FILE > NEW.tsv",
    )


def json_kind(head: bytes) -> tuple[str, str] | None:
    """Return what JSON is, and the command that makes lines of it; or None."""
    text = head.lstrip()
    if text[:1] not in (b"{", b"["):
        return None
    line = text.split(b"\n", 1)[0].strip()
    for end, items in (("", ""), (",", ".[]|")):
        try:
            value = json.loads(line.decode().rstrip(end) if end else line)
        except ValueError:
            continue
        if isinstance(value, dict) and any(isinstance(it, list) for it in value.values()):
            return None if not {"nodes", "elements"} & set(value) else ("JSON", _GRAPH)
        if _are_pairs(value, is_line=bool(end) or len(text.strip()) > len(line)):
            return "pairs of JSON", "write a line an edge, jq -r '.[]|@tsv' FILE > NEW.tsv"
        if isinstance(value, dict) and not end:
            return "lines of JSON", "pass --format jsonl"
        if isinstance(value, dict):
            return "lines of JSON", _JSON.format(items=items, **_ends(value))
        is_records = isinstance(value, list) and value and isinstance(value[0], dict)
        if is_records:
            return "JSON", _JSON.format(items=".[]|", **_ends(value[0]))
    # over several lines, or too long for this beginning
    if re.match(rb"\[\s*\[", text):
        return "pairs of JSON", "write a line an edge, jq -r '.[]|@tsv' FILE > NEW.tsv"
    if re.match(rb'\{\s*"|\[\s*\{\s*"', text) and (b":" in text[:4096]):
        keys = re.findall(rb'"(\w+)"\s*:', text[:4096])
        items = ".[]|" if text[:1] == b"[" else ""
        of_first = _ends(dict.fromkeys(key.decode() for key in keys))
        return "JSON", _JSON.format(items=items, **of_first)
    return None


def _are_pairs(value: object, *, is_line: bool) -> bool:
    """Tell whether JSON is a list of lists of ids; lists on lines of their own are none."""
    if is_line or not isinstance(value, list) or not value:
        return False
    return all(isinstance(it, list) and len(it) in (2, 3) for it in value)


def _ends(record: dict[str, object]) -> dict[str, str]:
    """Return which keys of a record name both ends: known ones, else the first two."""
    lowered = {key.lower(): key for key in reversed(record)}
    for src, dst in PAIRS:
        if src in lowered and dst in lowered:
            return {"src": lowered[src], "dst": lowered[dst]}
    return {"src": "source", "dst": "target"}


def _wide(head: bytes) -> tuple[str, str] | None:
    """Return that text is UTF-16 without a mark, or has bytes 0 in it; or None."""
    if b"\x00" not in head:
        return None
    first = head[: 4 * _UTF16]
    for place, name in ((1, "UTF-16LE"), (0, "UTF-16BE")):
        if len(first) >= _UTF16 and not any(first[place::2]) and all(first[1 - place :: 2]):
            return f"{name} text", f"convert it, iconv -f {name} -t UTF-8 FILE > NEW"
    try:
        text = head[: head.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError:
        return None
    is_text = all(letter.isprintable() or letter in "\x00\t\r\n" for letter in text)
    if text and is_text and text.count("\x00") * 4 < len(text):
        return _ZEROS
    return None
