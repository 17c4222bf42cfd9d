"""Nothing that is not an id becomes one: separators, arrows, headers, comments, zeros."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str, name: str = "g.txt") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


def edges(path: Path, options: str = "") -> list[tuple[str, ...]]:
    """Read with options as the command line has them; ends and relations as strings."""
    given = dict(re.findall(r"--(\w+) (\S+)", options))
    skip = int(given.pop("skip", 0))
    rows: list[tuple[str, ...]] = []
    for chunk in open_source(path, skip=skip, **given).chunks():
        assert isinstance(chunk, EdgeChunk)
        columns = [chunk.src, chunk.dst, *chunk.columns.values()]
        rows += zip(*(map(str, it.tolist()) for it in columns), strict=True)
    return rows


AB = [("a", "b"), ("b", "c")]
SEPARATED = [
    ("Oslo, Rome\nLima, Cairo\n", ",", [("Oslo", "Rome"), ("Lima", "Cairo")]),
    ("1, 2\n2, 3\n", ",", [("1", "2"), ("2", "3")]),
    ("1,2\n2,3\n", ",", [("1", "2"), ("2", "3")]),
    ("a;b\nb;c\n", ";", AB),
    ("a | b\nb | c\n", "|", AB),
    ("a|b\nb|c\n", "|", AB),
    ("a:b\nb:c\n", ":", AB),
    ("a, b, 0.5\n", ",", [("a", "b", "0.5")]),
    (
        "New York, Los Angeles\nRome, Ulan Bator\n",
        ",",
        [("New York", "Los Angeles"), ("Rome", "Ulan Bator")],
    ),
    (
        "New York\tLos Angeles\nRome\tUlan Bator\n",
        "tab",
        [("New York", "Los Angeles"), ("Rome", "Ulan Bator")],
    ),
    (
        "Oslo, N\tRome, I\nLima, P\tParis, F\n",
        "tab",
        [("Oslo, N", "Rome, I"), ("Lima, P", "Paris, F")],
    ),
]


@pytest.mark.parametrize(("text", "mark", "expected"), SEPARATED)
def test_a_sniffed_separator_is_said_in_one_line(
    write: Write, text: str, mark: str, expected: list[tuple[str, ...]]
) -> None:
    path = write(text)
    with pytest.warns(UserWarning, match="columns are separated by") as said:
        assert edges(path) == expected
    (remedy,) = re.findall(r"--separator (?!space)\S+", str(said[0].message))
    assert len(said) == 1
    assert mark in str(said[0].message)
    assert edges(path, remedy) == expected


def test_names_with_marks_inside_are_left_as_they_are(write: Write) -> None:
    assert edges(write("k:P1 k:P2\nk:P2 a,b\n")) == [("k:P1", "k:P2"), ("k:P2", "a,b")]
    assert edges(write("Oslo, Rome\n"), "--separator space") == [("Oslo,", "Rome")]
    assert edges(write("http://a/b http://a/c\n")) == [("http://a/b", "http://a/c")]


REFUSED = [
    ("1 -> 2\n2 -> 3\n", "", "--columns src,_,dst", [("1", "2"), ("2", "3")]),
    ("a -- b\nb -- c\n", "", "--columns src,_,dst", AB),
    ("a => b\n", "", "--columns src,_,dst", AB[:1]),
    ("a->b\nb->c\n", "", "sed 's/->/ /' FILE > NEW", AB),
    ("(a, b)\n(b, c)\n", "", "tr -d '()' < FILE > NEW", AB),
    ("a b;\nb c;\n", "", "sed 's/; *$//' FILE > NEW", AB),
    ("'a' 'b'\n'b' 'c'\n", "", 'tr -d "\'" < FILE > NEW', AB),
    ("Oslo, Rome\nLima, Washington, DC\n", "", "--separator space", None),
    (
        "New York\tParis\nNew Delhi\tRome\n",
        "",
        "--separator tab",
        [("New York", "Paris"), ("New Delhi", "Rome")],
    ),
    ("1 is 2\n2 is 3\n", "", "--columns src,_,dst", [("1", "2"), ("2", "3")]),
    ("src\tdst\na\tb\nb\tc\n", "", "--skip 1", AB),
    ("src\tdst\na\tb\nb\tc\n", "", "--format csv", AB),
    ("From To\na  b\nb c\n", "", "--format csv", AB),
    ('"from" "to"\n"a" "b"\n"b" "c"\n', "", "--format csv", AB),
    ("node1 node2\na b\nb c\n", "", "--skip 1", AB),
    ("name friend\n1 2\n2 3\n", "", "--skip 1", [("1", "2"), ("2", "3")]),
    ("head relation tail\na r b\n", "--format triples", "--skip 1", [("a", "b", "r")]),
    ("node1 label node2\na r b\n", "--format triples", "--skip 1", [("a", "b", "r")]),
    ("# x y\na r b\n", "--format triples", "--skip 1", [("a", "b", "r")]),
    ("// made by\na b\nb c\n", "", "--skip 1", AB),
    ("-- made by\na b\nb c\n", "", "--skip 1", AB),
    ("; made by\n; us\na b\nb c\n", "", "--skip 2", AB),
    ("a b\n// more edges\nb c\n", "", "grep -v '^//' FILE > NEW", AB),
]


@pytest.mark.parametrize(("text", "options", "remedy", "expected"), REFUSED)
def test_what_is_doubtful_is_refused_with_what_settles_it(
    write: Write,
    text: str,
    options: str,
    remedy: str,
    expected: list[tuple[str, ...]] | None,
) -> None:
    path = write(text)
    with pytest.raises(InputError) as refused:
        edges(path, options)
    assert "\n" not in str(refused.value)
    assert remedy in str(refused.value)
    if expected is None:
        return
    if not remedy.startswith("--"):
        remedy = remedy.replace("FILE", str(path)).replace("NEW", f"{path}.txt")
        subprocess.run(["bash", "-c", remedy], check=True)
        path, remedy = Path(f"{path}.txt"), ""
    if "tr -d '()'" in str(refused.value):
        with pytest.warns(UserWarning, match="separated by"):
            assert edges(path) == expected
        return
    assert edges(path, f"{options} {remedy}") == expected


@pytest.mark.parametrize(
    "text",
    ["src dst\na b\n", "// x\na b\n", "node1 node2\nx y\n", "1 0\n01 2\n", "+1 2\n3 4\n"],
)
def test_who_says_that_ids_are_strings_is_believed(write: Write, text: str) -> None:
    rows = [tuple(line.split()) for line in text.splitlines()]
    assert edges(write(text), "--ids string") == rows


def test_words_that_differ_by_numbers_are_ids_among_others(write: Write) -> None:
    assert edges(write("node1 node2\nnode2 node3\n")) == [
        ("node1", "node2"),
        ("node2", "node3"),
    ]


@pytest.mark.parametrize("name", ["g.csv", "g.txt", "g.tsv"])
def test_a_header_repeated_in_the_middle_is_no_edge(write: Write, name: str) -> None:
    mark = "," if name == "g.csv" else "\t"
    text = "source,target\na,b\nsource,target\nb,c\n".replace(",", mark)
    path = write(text, name)
    options = "" if name == "g.csv" else "--skip 1"
    with pytest.raises(InputError, match=rf"{name}:3: found the header of line 1") as found:
        edges(path, options)
    (command,) = re.findall(r"awk .*? > NEW", str(found.value))
    new = path.parent / f"new.{name}"
    command = command.replace("FILE", str(path)).replace("NEW", str(new))
    subprocess.run(["bash", "-c", command], check=True)
    assert edges(new, options) == AB
    assert len(edges(path, f"{options} --ids string")) == 3


def test_zeros_in_front_make_ids_strings_which_is_said(write: Write) -> None:
    path = write("01001 1001\n1001 02115\n")
    with pytest.warns(UserWarning, match="zeros in front, such as '01001'") as said:
        assert edges(path) == [("01001", "1001"), ("1001", "02115")]
    assert re.findall(r"--ids \w+", str(said[0].message)) == ["--ids string", "--ids int"]
    assert edges(path, "--ids int") == [("1001", "1001"), ("1001", "2115")]


@pytest.mark.parametrize("line", ["0200 7", "7 0200", "7 0200 ", "7 000000000000000000000"])
@pytest.mark.parametrize("weight", ["", " 0.5"])
def test_zeros_in_front_far_into_a_file_are_refused(
    write: Write, line: str, weight: str
) -> None:
    text = "".join(f"{k} {k + 1}{weight}\n" for k in range(200)) + f"{line}{weight}\n"
    path = write(text)
    with pytest.raises(InputError, match=r"g\.txt:201: found '0.*whose zeros in front"):
        edges(path)
    assert len(edges(path, "--ids int")) == len(edges(path, "--ids string")) == 201


def test_zeros_in_front_of_a_csv_are_kept_too(write: Write) -> None:
    path = write("src,dst\n1,2\n01,3\n", "g.csv")
    with pytest.warns(UserWarning, match="zeros in front"):
        assert edges(path) == [("1", "2"), ("01", "3")]
    text = "src,dst\n" + "1,2\n" * 150 + '1,"01"\n'
    with pytest.raises(InputError, match=r"g\.csv:152: found '01' as dst"):
        edges(write(text, "g.csv"))


@pytest.mark.parametrize("field", ["+1", "1.0", "1e3"])
def test_numbers_that_are_no_plain_integers_are_said_to_be_names(
    write: Write, field: str
) -> None:
    path = write(f"{field} 2\n3 4\n")
    with pytest.warns(UserWarning, match=f"such as '{re.escape(field)}'"):
        assert edges(path)[0] == (field, "2")


def test_lines_dropped_as_comments_that_look_like_edges_are_counted(write: Write) -> None:
    path = write("#python #numpy\nalice #python\n" + "#x %y\n" * 3 + "# no edge\n")
    with pytest.warns(UserWarning, match="dropped 4 lines .* such as '#python #numpy'"):
        assert edges(path) == [("alice", "#python")]
    assert (
        len(
            edges(
                write("#a #b\na #b\n"), "--format csv --separator space --columns src,dst"
            )
        )
        == 2
    )


def test_comments_of_other_tools_are_not_counted(write: Write) -> None:
    assert edges(write("# Nodes: 3 Edges: 2\n#FromNodeId ToNodeId\na b\nb c\n")) == AB
    assert edges(write("#1 #2\n1 2\n")) == [("1", "2")]


def test_a_csv_without_header_is_refused_with_its_columns_counted(write: Write) -> None:
    path = write("alice,bob,x,y\ncarol,dave,z,w\n", "g.csv")
    with pytest.raises(InputError) as refused:
        edges(path)
    (remedy,) = re.findall(r"--columns src,dst\S*", str(refused.value))
    assert remedy == "--columns src,dst,c3,c4"
    assert len(edges(path, remedy)) == 2
    assert edges(write("AA,BB,811\nBB,CC,214\n", "g.csv"))[0] == ("AA", "BB", "811.0")


def test_columns_that_are_not_known_are_asked_for_by_name(write: Write) -> None:
    path = write("originator_x,beneficiary_x,sum\na,b,1\n", "g.csv")
    with pytest.raises(InputError) as refused:
        edges(path)
    (remedy,) = re.findall(r"--columns src=\w+,dst=\w+", str(refused.value))
    assert edges(path, remedy) == [("a", "b", "1")]


@pytest.mark.parametrize(
    "header",
    ["id_1,id_2", "src,dest", "protein1,protein2", "Gene A,Gene B", "origin,destination"],
)
def test_names_of_both_ends_that_are_known_at_the_first_guess(
    write: Write, header: str
) -> None:
    assert edges(write(f'{header},dist\n"AA","BB",811\n', "g.csv")) == [("AA", "BB", "811")]


def test_excels_first_line_names_the_separator(write: Write) -> None:
    assert edges(write("sep=;\nSource;Target\na;b\nb;c\n", "g.csv")) == AB


@pytest.mark.parametrize("text", ["4 3\n0 1\n1 2\n2 3\n", "3 4\n1 2\n2 3\n1 3\n3 1\n"])
def test_a_first_line_that_counts_nodes_and_edges_is_no_edge(
    write: Write, text: str
) -> None:
    path = write(text)
    with pytest.raises(InputError, match=r"g\.txt:1: found . ., which are the numbers of"):
        edges(path)
    rows = [tuple(line.split()) for line in text.splitlines()]
    assert edges(path, "--skip 1") == rows[1:]
    assert edges(path, "--columns src,dst") == rows


def test_a_header_above_names_and_numbers_is_no_edge(write: Write) -> None:
    path = write("protein1 protein2 combined_score\np1 q2 490\np1 q3 198\n")
    with pytest.raises(InputError, match="--skip 1, or --format csv") as refused:
        edges(path)
    assert "--format triples" not in str(refused.value)
    for remedy in ("--skip 1", "--format csv"):
        assert [row[:2] for row in edges(path, remedy)] == [("p1", "q2"), ("p1", "q3")]


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 1000)])
def test_a_third_column_that_looks_like_times_is_said(
    write: Write, unit: str, scale: int
) -> None:
    path = write(f"1 2 {1325376000 * scale}\n2 3 {1325462400 * scale}\n")
    with pytest.warns(UserWarning, match=f"--columns src,dst,time --time-unit {unit}, or"):
        assert len(edges(path)) == 2
    (chunk,) = open_source(path, columns="src,dst,time", time_unit=unit).chunks()
    assert isinstance(chunk, EdgeChunk)
    assert str(chunk.columns["time"][0].as_py()).startswith("2012-01-01 00:00:00")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Source;Target;Weight\na;b;3,5\nb;c;4,25\n", "3,5"),
        ('Source,Target,Weight\na,b,"3,5"\nb,c,"4,25"\n', "3,5"),
        ('Source,Target,Weight\na,b,"+1.003,5"\nb,c,"1.000.004,25"\n', "+1.003,5"),
        ('Source,Target,Weight\na,b,"-1,003.5"\nb,c,"1,000,004.25"\n', "-1,003.5"),
        ("Source;Target;Weight\na;b;-1,003.5\nb;c;1,000,004.25\n", "-1,003.5"),
        ("Source;Target;Weight\na;b;0,125\nb;c;4,250\n", "0,125"),
        ('Source,Target,Weight\na,b,"0,125"\nb,c,"4,250"\n', "0,125"),
    ],
)
def test_decimal_commas_are_refused_with_what_replaces_them(
    write: Write, text: str, found: str
) -> None:
    path = write(text, "g.csv")
    expected = r"g\.csv:2: found " + re.escape(repr(found)) + " as weight"
    with pytest.raises(InputError, match=expected) as refused:
        edges(path)
    (command,) = re.findall(r"sed .*", str(refused.value))
    new = path.parent / "new.csv"
    command = command.replace("FILE", str(path)).replace("NEW", str(new))
    subprocess.run(["bash", "-c", command], check=True)
    weights = [float(weight) for _, _, weight in edges(new)]
    size = {"3": [3.5, 4.25], "+": [1003.5, 1000004.25], "-": [-1003.5, 1000004.25]}
    assert weights == (size | {"0": [0.125, 4.25]})[found[0]]


def test_a_comma_that_may_be_either_is_told_so(write: Write) -> None:
    path = write("Source;Target;Weight\na;b;1,125\nb;c;0,250\n", "g.csv")
    with pytest.raises(InputError, match="found '1,125' as weight") as refused:
        edges(path)
    either = re.findall(r"if commas (.*?), (sed -E '.*?') FILE > NEW", str(refused.value))
    assert [what for what, _ in either] == ["are decimal points", "separate thousands"]
    new = path.parent / "new.csv"
    for (_, command), wanted in zip(either, [[1.125, 0.25], None], strict=True):
        subprocess.run(["bash", "-c", f"{command} {path} > {new}"], check=True)
        if wanted is not None:
            assert [float(weight) for _, _, weight in edges(new)] == wanted
    assert "a;b;1125" in new.read_text()


def test_a_table_of_markdown_is_refused_with_what_makes_it_plain(write: Write) -> None:
    path = write("| src | dst |\n|-----|:---:|\n| a | b |\n| b | c |\n")
    with pytest.raises(InputError, match="as in a table of Markdown") as refused:
        edges(path)
    (command,) = re.findall(r"sed .*", str(refused.value))
    new = path.parent / "new.txt"
    command = command.replace("FILE", str(path)).replace("NEW", str(new))
    subprocess.run(["bash", "-c", command], check=True)
    assert edges(new, "--format csv") == AB


@pytest.mark.parametrize("name", ["g.dot", "g.orc", "g.xlsx", "g.sif"])
def test_files_that_are_not_read_name_a_way(write: Write, name: str) -> None:
    with pytest.raises(
        InputError, match=rf"{name}: \.\w+ files are not read as they are; "
    ):
        edges(write("a b\n", name))


def test_words_for_missing_ids_are_counted(write: Write) -> None:
    path = write("source,target\na,NA\nNA,c\nb,null\nNAomi,b\n", "g.csv")
    with pytest.warns(UserWarning, match="ends of edges are") as said:
        assert len(edges(path)) == 4
    assert ["2 ends of edges are 'NA'" in str(it.message) for it in said] == [True, False]
    (command,) = re.findall(r"grep .* > NEW", str(said[0].message))
    new = path.parent / "new.csv"
    command = command.replace("FILE", str(path)).replace("NEW", str(new))
    subprocess.run(["bash", "-c", command], check=True)
    assert edges(path, "--ids string")[0] == ("a", "NA")
    with pytest.warns(UserWarning, match="1 ends of edges are 'null'"):
        assert edges(new) == [("b", "null"), ("NAomi", "b")]
