"""Lines that are no edges as they stand: totals, drawn tables, glued marks, odd letters."""

import gzip
import lzma
import re
import shlex
import subprocess
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import InputError
from graphsys.datasets.append import append
from graphsys.datasets.text.odd_names import OddNames
from tests.stores import read_file_edges

AB, NUMBERS = [("a", "b"), ("b", "c")], [("1", "2"), ("2", "3")]
CITIES = [("New York", "Los Angeles"), ("Rome", "Ulan Bator")]
TALL = "src,dst,note\na,b,x\nb,c,y\n"
RULE = "+-----+-----+\n"
BOX = f"{RULE}| src | dst |\n{RULE}| a   | b   |\n| b   | c   |\n{RULE}"
CHAINS: list[tuple[str, str, tuple[str, ...], list[tuple[str, str]]]] = [
    ("g.csv", "src,dst\na,b\nb,c\nTotal,2\n", ("sed '4d' FILE > NEW",), AB),
    ("g.csv", 'src,dst\na,b\nb,c\n"Grand total","1,002"\n', ("sed '4d' FILE > NEW",), AB),
    ("g.txt", "a b\nb c\nTOTAL: 2\n", ("sed '3d' FILE > NEW",), AB),
    ("g.tsv", "a\tb\nb\tc\nSum\t-\n", ("sed '3d' FILE > NEW",), AB),
    ("g.txt", "a b\nb c\n(2 rows)\n", ("sed '3d' FILE > NEW",), AB),
    ("g.csv", "src,dst\n1,2\n2,3\nTotal,2\n", ("grep -v '^Total,' FILE > NEW",), NUMBERS),
    ("g.csv", f"{TALL}Sum,,2\n", ("grep -v '^Sum,' FILE > NEW",), AB),
    ("g.txt", "1 2\n2 3\ntotal 2\n", ("grep -v '^total ' FILE > NEW",), NUMBERS),
    (
        "g.txt",
        "1 2 3\n2 3\n",
        ("--format adjacency",),
        [("1", "2"), ("1", "3"), ("2", "3")],
    ),
    (
        "g.txt",
        "a b c\nb c\n",
        ("--format adjacency",),
        [("a", "b"), ("a", "c"), ("b", "c")],
    ),
    (
        "g.txt",
        "1 2\n2 3 1\n3\n1 4 2\n",
        ("--format adjacency",),
        [("1", "2"), ("2", "3"), ("2", "1"), ("1", "4"), ("1", "2")],
    ),
    ("g.csv", 'src,dst,note\na,b,"x\ny"\nb,c,z\n', ("python3 -c FILE",), AB),
    ("g.csv", 'src;dst;note\n"a";b;"x\ny;z"\nb;c;z\n', ("python3 -c FILE",), AB),
    ("g.csv", '"src","no\nte","dst"\na,x,b\nb,x,c\n', ("python3 -c FILE",), AB),
    (
        "g.txt",
        "  1  2\n 10200\n100200\n",
        ("sed -E 's/^(.{3})/\\1 /' FILE > NEW",),
        [("1", "2"), ("10", "200"), ("100", "200")],
    ),
    (
        "g.txt",
        "New York  Los Angeles\nRome      Ulan Bator\n",
        ("sed -E 's/ {2,}/\\t/g' FILE > NEW", "--separator tab"),
        CITIES,
    ),
    (
        "g.txt",
        "New York  Rome\nSan Jose  Lima\n",
        ("sed -E 's/ {2,}/\\t/g' FILE > NEW", "--separator tab"),
        [("New York", "Rome"), ("San Jose", "Lima")],
    ),
    ("g.csv", "| src | dst |\n|-----|:---:|\n| a | b |\n| b | c |\n", ("sed -E FILE",), AB),
    (
        "g.md",
        "| src | dst |\n|-----|:---:|\n| a | b |\n| b | c |\n",
        ("sed -E FILE > .csv",),
        AB,
    ),
    ("g.csv", BOX, ("--skip 1", "sed -E FILE"), AB),
    ("g.txt", BOX, ("sed -E FILE", "--format csv"), AB),
    (
        "g.txt",
        "1::2::5::978\n2::3::4::979\n",
        ("sed 's/::/\\t/g' FILE > NEW", "--separator tab --columns src,dst,c3,c4"),
        NUMBERS,
    ),
    ("g.txt", "a||b\nb||c\n", ("sed 's/||/\\t/g' FILE > NEW",), AB),
    ("g.txt", "1/2\n2/3\n", ("LC_ALL=C sed 's/\\// /' FILE > NEW",), NUMBERS),
    ("g.txt", "a-b\nb-c\n", ("LC_ALL=C sed 's/-/ /' FILE > NEW",), AB),
    ("g.txt", "a\\tb\nb\\tc\n", ("LC_ALL=C sed 's/\\\\t/ /' FILE > NEW",), AB),
    (
        "g.txt",
        "a\u2192b\nb\u2192c\n",
        ("LC_ALL=C sed 's/\\xe2\\x86\\x92/ /' FILE > NEW",),
        AB,
    ),
    (
        "g.txt",
        "1\u00a02\n2\u00a03\n",
        ("LC_ALL=C sed 's/\\xc2\\xa0/ /' FILE > NEW",),
        NUMBERS,
    ),
    ("g.txt", "a-->b\nb-->c\n", ("sed 's/[<=~-]*[-=]>/ /' FILE > NEW",), AB),
    ("g.txt", "a<->b\nb<->c\n", ("sed 's/[<=~-]*[-=]>/ /' FILE > NEW",), AB),
    ("g.txt", "a==>b\nb==>c\n", ("sed 's/[<=~-]*[-=]>/ /' FILE > NEW",), AB),
    ("g.txt", "1 -> 2 0.5\n2 -> 3 0.7\n", ("--columns src,_,dst,weight",), NUMBERS),
    ("g.txt", "1 -> 2 x\n2 -> 3 y\n", ("--columns src,_,dst,c4",), NUMBERS),
    ("g.txt", "e 1 2\ne 2 3\n", ("--columns _,src,dst",), NUMBERS),
    ("g.txt", "a, b\nb, c\nc d\n", ("sed 's/,/ /g' FILE > NEW",), [*AB, ("c", "d")]),
    (
        "g.txt",
        "1, 2\n2 3\n3 4\n4 5\n5 6\n",
        ("sed 's/,/ /g' FILE > NEW",),
        [*NUMBERS, ("3", "4"), ("4", "5"), ("5", "6")],
    ),
    (
        "g.txt",
        "\u201ca\u201d \u201cb\u201d\n\u201cb\u201d \u201cc\u201d\n",
        ("LC_ALL=C sed FILE",),
        AB,
    ),
    ("g.txt", "`a` `b`\n`b` `c`\n", ("tr -d '`' < FILE > NEW",), AB),
    ("g.txt", "[a] [b]\n[b] [c]\n", ("tr -d '[]' < FILE > NEW",), AB),
    ("g.txt", "* made by\na b\nb c\n", ("--skip 1",), AB),
    ("g.txt", "a b\n/* more */\nb c\n", ("grep -v '^/[*]' FILE > NEW",), AB),
    ("g.txt", "=== ===\na b\nb c\n=== ===\n", ("grep -v '^===' FILE > NEW",), AB),
    ("g.csv", "src,dst\na,b\n# com,ment\nb,c\n", ("grep -v '^#' FILE > NEW",), AB),
    (
        "g.txt",
        "1 2\r2 3\n3 4\r\n",
        ("tr '\\r' '\\n' < FILE > NEW",),
        [*NUMBERS, ("3", "4")],
    ),
    ("g.txt", "parent child\na b\nb c\n", ("--skip 1",), AB),
    ("g.txt", "user_id item_id\na b\nb c\n", ("--skip 1",), AB),
    ("g.txt", "boss helper\ne1 e2\ne2 e3\n", ("--skip 1",), [("e1", "e2"), ("e2", "e3")]),
]
"""Name, text, what messages say one after the other, and the edges in the end."""


def follow(told: str, remedy: str, path: Path) -> Path:
    """Run the command that a message has, whose beginning is given; return its file."""
    start = remedy.partition(" FILE")[0]
    assert start in told
    command = told[told.index(start) :]
    command = command[: re.search(r"NEW(\.csv)?", command).end()]  # type: ignore[union-attr]
    new = path.parent / f"new-{path.stem}{'.csv' if '.csv' in remedy else path.suffix}"
    command = re.sub(r"NEW(\.csv)?$", shlex.quote(str(new)), command)
    command = command.replace("FILE", shlex.quote(str(path)))
    subprocess.run(["bash", "-c", f"set -e; {command}"], check=True)
    return new


@pytest.mark.parametrize(("name", "text", "remedies", "expected"), CHAINS)
@pytest.mark.filterwarnings("ignore:.*columns are separated by")
def test_lines_that_are_no_edges_are_refused_with_what_leads_on(
    tmp_path: Path,
    name: str,
    text: str,
    remedies: tuple[str, ...],
    expected: list[tuple[str, str]],
) -> None:
    path, options = tmp_path / name, ""
    path.write_bytes(text.encode())
    for remedy in remedies:
        if "--separator" not in options + remedy or "sed" in remedy:
            with pytest.raises(InputError) as refused:
                read_file_edges(path, options)
            told = str(refused.value)
            assert "\n" not in told
        if remedy.startswith("--"):
            assert remedy.split(" --columns")[0] in told
            options += f" {remedy}"
        else:
            path, options = follow(told, remedy, path), ""
    assert read_file_edges(path, options) == expected


GOOD = [
    "".join(f"hub {k}\n" for k in range(1, 6)),
    "a 1\nb 2\nTotal 2\n",
    "Shell BP\nEngie Total\n",
    "EGF EGFR\nTP53 MDM2\nBRCA1 BRCA2\n",
    "EGF EGFR 0.9\nTP53 MDM2 0.7\n",
    "alice bob\ncarol3 dave4\neve5 alice1\n",
    "abcdef fedcba\n1a2b3c 4d5e6f\n9a8b7c 0d1e2f\n",
    "a-b c_d\ne.f g-h\n_x y_\n",
    "http://a.org/1 http://a.org/2\nhttp://a.org/2 http://a.org/3\n",
    "<http://a.org/1> <http://a.org/2>\n<http://a.org/2> <http://a.org/3>\n",
    "GO:0001 GO:0002\nGO:0002 HP:0003\n",
    "a@x.com b@y.com\n@c@z.org a@x.com\n",
    "\u6771\u4eac \u5927\u962a\n\u5927\u962a \u4eac\u90fd\n",
    "a==1.0 b==2.0\nstd::map std::list\n",
    "parent child\nmother child\n",
    "1 2    0.500\n2 3    0.250\n10 4   0.125\n",
]
"""Edge lists that look like something else, and are none."""


@pytest.mark.parametrize("text", GOOD)
def test_ordinary_names_go_in_without_a_word(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.txt"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_file_edges(path) == [
            tuple(line.split()[:2]) for line in text.splitlines()
        ]


@pytest.mark.parametrize("text", ["Oslo ,Rome\nBern ,Lima\n", "Oslo ;Rome\nBern ;Lima\n"])
def test_marks_glued_to_second_ids_separate(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.txt"
    path.write_text(text)
    with pytest.warns(UserWarning, match="columns are separated by"):
        assert read_file_edges(path) == [("Oslo", "Rome"), ("Bern", "Lima")]


def test_a_star_of_a_name_is_said_and_a_mark_of_lines_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("hub 1 5\nhub 2 3\n")
    with pytest.warns(UserWarning, match="'hub' is the first word of every line.*_,src"):
        assert read_file_edges(path) == [("hub", "1"), ("hub", "2")]
    path.write_text("edge 1 5\nedge 2 3\n")
    with pytest.raises(InputError, match="'edge' is the first word of every line"):
        read_file_edges(path)


def test_a_bad_line_of_many_is_no_list_and_no_header(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2\n2 3\n3 4 5\n4 5\n")
    with pytest.raises(InputError, match=r"g\.txt:3: .*correct or remove the line$"):
        read_file_edges(path)
    path = tmp_path / "g.csv"
    path.write_text("src,dst\n1,2,3\n2,3\n")
    with pytest.raises(InputError, match=r"g\.csv:2: found 3 columns") as refused:
        read_file_edges(path)
    assert "--skip" not in str(refused.value)


def test_an_open_quote_is_not_closed_by_the_command(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text('src,dst\na,"b\nc,d\n')
    with pytest.raises(InputError, match="does not end on its line") as refused:
        read_file_edges(path)
    with pytest.raises(subprocess.CalledProcessError):
        follow(str(refused.value), "python3 -c FILE", path)


def test_totals_among_names_are_names(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    for text in ("src,dst\nTotal,Engie\n", "src,dst\nTotal,7\na,b\nTotal,8\n"):
        path.write_text(text)
        assert read_file_edges(path)[0][0] == "Total"
    path.write_text("src,dst\na,b\nTotal,2\n")
    assert len(read_file_edges(path, "--ids string")) == 2


@pytest.mark.parametrize("num_rows", [9, 1_700_000])  # of a block, and of several
def test_totals_are_told_alike_in_files_of_any_size(tmp_path: Path, num_rows: int) -> None:
    rows = "".join(f"a{k % 9} b{k % 7}\n" for k in range(num_rows))
    path = tmp_path / "g.txt"
    path.write_text(f"{rows}Total 7\n")
    line = num_rows + 1
    with pytest.raises(InputError, match=rf"g\.txt:{line}: .*'Total 7'; remove it, sed"):
        read_file_edges(path)
    for first in ("Total 5", "a1 7", "7 a1"):  # names that stand in the first block
        path.write_text(f"{first}\n{rows}Total 7\n")
        assert len(read_file_edges(path)) == num_rows + 2


@pytest.mark.filterwarnings("ignore:.*no model reads the columns")
def test_totals_of_tables_with_types_are_refused(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    edges.write_text("src,dst\na,b\nb,a\nTotal,2\n")
    nodes.write_text("id,age\na,3\nb,4\n")
    kind = ("person", "knows", "person")
    with pytest.raises(InputError, match=r"e\.csv:4: the last line looks like totals"):
        gs.ingest(nodes={"person": nodes}, edges={kind: edges}, out=tmp_path / "g")
    edges.write_text("src,dst\na,b\nb,a\n")
    nodes.write_text("id,age\na,3\nb,4\nTotal,7\n")
    with pytest.raises(InputError, match=r"n\.csv:4: the last line looks like totals"):
        gs.ingest(nodes={"person": nodes}, edges={kind: edges}, out=tmp_path / "g")


ODD = [
    ("a\u200bb", "ab", r"a\u200bb", r"LC_ALL=C sed 's/\xe2\x80\x8b//g' FILE"),
    ("\ufeffab", "ab", r"\ufeffab", r"LC_ALL=C sed 's/\xef\xbb\xbf//g' FILE"),
    ("ab\u00a0", "ab", r"ab\xa0", r"LC_ALL=C sed 's/\xc2\xa0/ /g' FILE"),
    ("ab\u200d", "ab", r"ab\u200d", r"LC_ALL=C sed 's/\xe2\x80\x8d//g' FILE"),
    ("ab\x1a", "ab", r"ab\x1a", r"LC_ALL=C sed 's/\x1a//g' FILE"),
    ("Zu\u0308rich", "Z\u00fcrich", r"Zu\u0308rich", "python3 -c FILE"),
    ("\u1112\u1161\u11ab", "\ud55c", "\u1112", "python3 -c FILE"),
]


@pytest.mark.parametrize(("odd", "plain", "shown", "remedy"), ODD)
def test_names_that_look_like_others_are_counted_and_made_visible(
    tmp_path: Path, odd: str, plain: str, shown: str, remedy: str
) -> None:
    path = tmp_path / "g.csv"
    path.write_text(f"src,dst\n{odd},x\ny,{odd}\n{plain},z\n")
    with pytest.warns(UserWarning, match="2 ends of edges are names with letters") as said:
        assert len({end for row in read_file_edges(path) for end in row}) == 5
    assert len(said) == 1
    assert shown in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = follow(str(said[0].message), remedy, path)
        assert {end for row in read_file_edges(new) for end in row} == {
            plain,
            "x",
            "y",
            "z",
        }
        assert len(read_file_edges(path, "--ids string")) == 3


MANY = "".join(f"a{k} b{k}\n" for k in range(120))
LATE = [
    (f"{MANY}src dst\n", "1 row is 'src', 'dst', as a header", "grep -vE FILE"),
    (f"x1 y1\nFrom To\n{MANY}From To\n", "2 rows are 'From', 'To'", "grep -vE FILE"),
    (f"{MANY}// more\n", "1 rows begin with a mark of comments", "grep -v '^//' FILE"),
    (f"{MANY}* more\n", "1 rows begin with a mark of comments", "grep -v '^[*]' FILE"),
]


@pytest.mark.parametrize(("text", "says", "remedy"), LATE)
def test_headers_and_comments_behind_the_first_lines_are_said(
    tmp_path: Path, text: str, says: str, remedy: str
) -> None:
    path = tmp_path / "g.txt"
    path.write_text(text)
    with pytest.warns(UserWarning, match=says) as said:
        assert len(read_file_edges(path)) == text.count("\n")
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_file_edges(follow(str(said[0].message), remedy, path))) in (
            120,
            121,
        )
        assert len(read_file_edges(path, "--ids string")) == text.count("\n")


def test_words_that_are_nodes_elsewhere_are_no_header(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    for text in ("source target\nx source\n", "head tail\nleg tail\n"):
        path.write_text(MANY + text)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(read_file_edges(path)) == 122
    path.write_text("".join(f"//a.org/{k} //b.org\n" for k in range(120)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_file_edges(path)) == 120


def test_names_of_other_scripts_are_no_odd_ones(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    names = ["می\u200cخ", "Юй", "日本", "Zürich"]
    path.write_text("".join(f"{a} {b}\n" for a in names for b in names))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_file_edges(path)) == 16


def test_names_of_ascii_are_not_looked_at_letter_by_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = OddNames("g.txt", is_open=True)
    monkeypatch.setattr(OddNames, "_add_letters", None)
    names = pa.array(["a", "b~", " c"]).dictionary_encode()
    watch.add(names, names)
    watch.add(np.arange(3), np.arange(3))
    with pytest.raises(TypeError):
        watch.add(pa.array(["\u00e9"]).dictionary_encode())


def test_a_header_with_letters_that_are_not_seen_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("\u200bsrc,dst\na,b\n")
    with pytest.raises(InputError, match=r"among \\u200bsrc, dst"):
        read_file_edges(path)


STRANGE = [
    ("src dst\nx y\n", "txt", InputError, "found the header"),
    ("// made\nx y\n", "txt", InputError, "looks like a comment"),
    ("src,dst\nx,y\nTotal,2\n", "csv", InputError, "looks like totals"),
    ("NA x\nx y\n", "txt", UserWarning, "1 ends of edges are 'NA'"),
    ("src,dst\nx\u200b,y\n", "csv", UserWarning, "letters that are not seen"),
]


@pytest.mark.parametrize(("text", "suffix", "kind", "message"), STRANGE)
@pytest.mark.parametrize("packed", ["", ".gz", ".xz", ".zip", "address", "append"])
def test_guards_hold_in_packed_files_and_where_edges_are_appended(
    tmp_path: Path, text: str, suffix: str, kind: Any, message: str, packed: str
) -> None:
    data, path = (
        text.encode(),
        tmp_path / f"g.{suffix}{packed if packed[:1] == '.' else ''}",
    )
    if packed == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"g.{suffix}", data)
    else:
        packs: dict[str, Any] = {".gz": gzip.compress, ".xz": lzma.compress}
        pack = packs.get(packed, bytes)
        path.write_bytes(pack(data))
    expected: Any = pytest.warns if kind is UserWarning else pytest.raises
    if packed != "append":
        with expected(kind, match=message):  # addresses are read as those of S3
            read_file_edges(f"file://{path}" if packed == "address" else path)
        return
    first = tmp_path / "first.txt"
    first.write_text("a b\nb c\n")
    gs.ingest(first, tmp_path / "g")
    with expected(kind, match=message):
        append(tmp_path / "g", path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        append(tmp_path / "g", path, ids="string")


def test_integers_are_appended_to_names_as_names(tmp_path: Path) -> None:
    first, more = tmp_path / "first.txt", tmp_path / "more.txt"
    first.write_text("a b\nb c\n")
    more.write_text("1 2\n01 2\n")
    gs.ingest(first, tmp_path / "g")
    assert append(tmp_path / "g", more).graph.num_nodes == 6


def test_a_format_may_be_named_by_the_ending_of_its_files(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2 3\n2 3\n")
    assert len(read_file_edges(path, "--format adjlist")) == 3


def test_a_folder_of_graphs_with_an_empty_one_says_what_to_remove(tmp_path: Path) -> None:
    one = '{"nodes":[{"id":0},{"id":1}],"links":[{"source":0,"target":1}]}'
    for name, text in (("a", one), ("b", one), ("c", '{"nodes":[],"links":[]}')):
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "labels.csv").write_text("graph,label\na,0\nb,1\nc,1\n")
    with pytest.raises(
        InputError, match=r"no nodes.*; remove the file, and its line of lab"
    ):
        read_file_edges(tmp_path, "--format graphs")
    (tmp_path / "c.json").unlink()
    (tmp_path / "labels.csv").write_text("graph,label\na,0\nb,1\n")
    assert len(read_file_edges(tmp_path, "--format graphs")) == 2


def test_a_folder_without_files_of_the_format_named_is_told_of_that(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("src,dst\na,b\n")
    with pytest.raises(InputError, match="no files of format graphs; name"):
        read_file_edges(tmp_path, "--format graphs")
    assert read_file_edges(tmp_path / "a.csv") == [("a", "b")]


def test_nodes_of_neo4j_alone_are_told_what_is_missing(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "p.csv", tmp_path / "r.csv"
    nodes.write_text("id:ID,:LABEL\n1,P\n2,P\n")
    edges.write_text(":START_ID,:END_ID,:TYPE\n1,2,KNOWS\n")
    with pytest.raises(InputError, match=r"p\.csv: nodes alone, expected files of edges"):
        read_file_edges(nodes)
    assert gs.ingest([nodes, edges], tmp_path / "g").graph.num_edges == 1
