"""Knowledge graphs as triples: head, relation, tail, one triple a line.

Files called train, valid and test (``train.txt``, ``valid.tsv.gz`` ...) become splits,
whether they are given one by one, as a folder, or in a tar archive, which is read in
place. Columns are separated by tabs where the first line has one, else by blanks.
"""

from typing import Final

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, archive_members, text_file
from graphsys.datasets.split_names import SPLITS, by_split
from graphsys.datasets.text.dialect import sniff_separator
from graphsys.datasets.text.first_lines import (
    DataLine,
    first_lines,
    is_first_odd,
    no_text,
)
from graphsys.datasets.text.id_guards import (
    refuse_comments,
    refuse_header,
    skipped_header,
)
from graphsys.datasets.text.layout import (
    BLANKS,
    ID,
    INTEGER,
    NUMBER,
    SKIP,
    WORD,
    LineFormat,
    TextColumn,
    show,
)
from graphsys.datasets.text.source import (
    TextPart,
    TextSource,
)
from graphsys.storage.source import Source

TRIPLE: Final = EdgeType("entity", "triple", "entity")
DEFAULT_NAMES: Final = ("src", "relation", "dst")
_ALIASES: Final = {"head": "src", "tail": "dst"}


def open_triples(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of triples; ids are strings unless ``ids="int"``.

    Raises:
        InputError: the first line of a file is not a triple.
    """
    files = [member for file in files for member in expand_archive(file)]
    parts = [_part(file, options, split) for file, split in by_split(files)]
    return TextSource(
        parts, is_directed=not options.is_undirected, num_threads=options.num_threads
    )


def expand_archive(file: InputFile) -> list[InputFile]:
    """Return the members of a tar archive that are splits; any other file unchanged.

    Raises:
        InputError: the archive has no such member.
    """
    name = file.path.name.lower()
    if not name.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2")):
        return [file]
    members = archive_members(file)
    splits = [member for member in members if member.stem in SPLITS]
    if not splits:
        raise InputError(
            f"{file.path}: holds no train, valid or test file among {len(members)}; "
            "unpack it and name the files"
        )
    return splits


def _width_hint(lines: list[DataLine], names: tuple[str, ...]) -> str:
    """Say what to do about a first line of another width: is it alone, or are all so?"""
    first = lines[0]
    more = len(first.fields) - len(names)
    if more > 0 and all(len(line.fields) == len(first.fields) for line in lines):
        spelled = ",".join(names) + ",_" * more
        return f"pass --columns {spelled} and a name for each _ that you want, such as time"
    return f"pass --skip {first.number} if it is a header or a count"


def _part(file: InputFile, options: ReadOptions, split: str) -> TextPart:
    names = tuple(_ALIASES.get(name, name) for name in options.columns or DEFAULT_NAMES)
    if options.roles or not {"src", "relation", "dst"} <= set(names):
        raise ConfigError(
            "columns: triples need src, relation and dst by position, "
            "for example src,dst,relation"
        )
    file = text_file(file)
    separator, said = _separator(file, options, len(names))
    lines = first_lines(
        file,
        skip=options.skip,
        separator=separator,
        has_comments=False,
        num_columns=len(names),
    )
    first = lines[0]
    if (err := no_text(file, first)) is not None:
        raise err
    if len(first.fields) != len(names):
        raise InputError(
            f"{file.name}:{first.number}: found {len(first.fields)} columns, expected "
            f"{len(names)} ({' '.join(names)}): {show(first.text)}; "
            f"{_width_hint(lines, names)}"
        )
    is_guarded = options.ids == "auto" or options.guards_names
    if is_guarded:
        refuse_comments(file, lines)
        ends = [names.index("src"), names.index("dst")]
        refuse_header(f"{file.name}:{first.number}", lines, ends, f"--skip {first.number}")
    if said:
        note(said)
    # Names may be digits throughout (WordNet's synsets): they stay strings.
    id_kind = ID if options.ids == "int" else WORD
    kinds = {"src": id_kind, "dst": id_kind, "weight": NUMBER, "time": INTEGER, "_": SKIP}
    columns = tuple(TextColumn(name, kinds.get(name, WORD)) for name in names)
    layout = LineFormat(
        columns=columns,
        separator=separator,
        has_comments=False,
        first_line=first.number,
        is_first_odd=is_first_odd(lines),
    )
    header = None if not is_guarded else skipped_header(file, options.skip, layout)
    return TextPart(
        file,
        layout,
        options.edge_type or TRIPLE,
        skip=options.skip,
        split=split,
        guards_names=is_guarded,
        header=header,
    )


def _separator(file: InputFile, options: ReadOptions, num_columns: int) -> tuple[int, str]:
    """Return what separates columns, and what to say about it."""
    if options.separator is not None:
        separator = ord(options.separator)
        return BLANKS if separator == ord(" ") else separator, ""
    lines = first_lines(file, skip=options.skip, separator=BLANKS, has_comments=False)
    if all(line.text.strip(b" \r").count(b"\t") == num_columns - 1 for line in lines):
        return ord("\t"), ""
    separator, said = sniff_separator(file, skip=options.skip, num_columns=num_columns)
    has_tab = b"\t" in lines[0].text and separator == BLANKS
    return (ord("\t") if has_tab else separator), said


formats.register("triples")(
    Format(
        open=open_triples,
        about="knowledge graph, head relation tail; files train, valid, test are splits",
    )
)
