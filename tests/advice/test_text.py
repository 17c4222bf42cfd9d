"""What is advised about edge lists in text leads to the right graph."""

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

LISTS = "datasets/readers/edgelist.py"
GUARDS = "datasets/text/id_guards.py"
ODD = "datasets/text/odd_names.py"
DRAWN = "datasets/text/drawn_columns.py"
DIALECT = "datasets/text/dialect.py"
APOC = (
    '"_id","_labels","name","_start","_end","_type","since"\n'
    '"0",":Person","Jim, ""Red""",,,,\n'
    '"1",":Person","Eva",,,,\n"7",":City","Ulm",,,,\n'
    ',,,"0","1","KNOWS","1993"\n,,,"1","7","LIVES_IN",\n'
)
TWO_EDGES = {"num_nodes": 3, "num_edges": 2}
IN = "ingest a.txt -o g {0} --json"


def of_file(text: str | bytes, told_in: str, advice: str, **given: object) -> Case:
    """Return a case of one file that is refused, and goes in as advised."""
    settings: dict[str, object] = {
        "files": {"a.txt": text},
        "command": "ingest a.txt -o g",
        "then": (IN,),
        "expected": TWO_EDGES,
    }
    return Case(told_in=told_in, advice=advice, **(settings | given))  # type: ignore[arg-type]


WARNED = {"code": 0, "then": ("ingest a.txt -o g2 {0} --json",)}
HEADER = "origin goal\n1 2\n2 3\n"
THIRDS = "".join(f"{n} {n + 1} {(n * 7) % 40}\n" for n in range(40))
LISTS_OF_NEIGHBORS = "1: 2 3\n2: 3 1\n"
CASES = {
    "skip": of_file("some text here now\n1 2\n2 3\n", LISTS, r"a count, pass (--skip 1)"),
    "triples": of_file("a likes b\nb likes c\n", LISTS, r"pass (--format triples)"),
    "name other columns": of_file(
        "a b likes\nb c likes\n",
        LISTS,
        r"name other columns with (--columns src,dst,)NAME",
        then=("ingest a.txt -o g {0}label --json",),
    ),
    "four columns": of_file(
        "1 2 5 7\n2 3 5 8\n",
        LISTS,
        r"name them with (--columns \S+), or",
    ),
    "a header above many columns": of_file(
        "BIO ID\tName A\tName B\tScore\n1\tAB\tCD\t1\n2\tCD\tEF\t2\n",
        LISTS,
        r"pass (--format csv), which reads",
    ),
    "a comment above many columns": of_file(
        "#ID\tGene A\tGene B\tScore\n1\tAB\tCD\t1\n2\tCD\tEF\t2\n",
        LISTS,
        r"pass (--format csv) if these are their names",
    ),
    "several pairs of columns": of_file(
        "#ID,Gene A,Gene B,Code A,Code B\n1,AB,CD,7,8\n2,CD,EF,8,7\n",
        "datasets/roles.py",
        r'with (--columns "[^"]+")',
        command="ingest a.txt -o g --format csv",
        then=("ingest a.txt -o g --format csv {0} --json",),
    ),
    "lists of neighbors": of_file(
        "1 2 3 4\n2 3 4 1\n",
        LISTS,
        r"pass (--format adjacency)",
        expected={"num_nodes": 4, "num_edges": 6},
    ),
    "lists of neighbors, the first of two": of_file(
        "1 2 3\n2 3\n",
        "datasets/text/source.py",
        r"; pass (--format adjacency) if lines are",
        expected={"num_nodes": 3, "num_edges": 3},
    ),
    "lists of one length": of_file(
        "1 2  \n2 3 1\n3    \n",
        DRAWN,
        r"or pass (--format adjacency) if",
        expected={"num_nodes": 3, "num_edges": 3},
    ),
    "nodes above edges": Case(
        files={"all.csv": APOC},
        command="ingest all.csv -o g",
        told_in="datasets/folders/neo4j.py",
        advice=r'apart, (python3 -c "[^"]*") < FILE, and (ingest nodes.csv edges.csv)',
        then=("$ {0} < all.csv", "{1} -o g --json"),
        expected={"num_nodes": 3, "num_edges": 2},
    ),
    "doubled marks": of_file(
        "1::2::5::978\n2::3::5::979\n",
        DRAWN,
        r"write tabs, (sed '[^']*') FILE > NEW, and pass (--separator tab)",
        then=(
            "$ {0} a.txt > b.txt",
            "ingest b.txt -o g {1} --columns src,dst,c3,c4 --json",
        ),
    ),
    "many small graphs": of_file(
        "2\n3 0\n5 2 1 2\n5 2 0 2\n5 2 0 1\n3 1\n5 1 1\n6 2 0 2\n5 1 1\n",
        LISTS,
        r"a line a node each; pass (--format gin)",
        expected={"num_nodes": 8, "num_edges": 5},  # two of the nodes are the graphs
    ),
    "a header": of_file(
        "src dst weight\n1 2 5\n2 3 5\n",
        LISTS,
        r"pass (--format csv), which reads",
    ),
    "a header above numbers": of_file(
        "some thing here\n1 2 5\n2 3 5\n",
        LISTS,
        r"above numbers; pass (--skip 1)",
    ),
    "a header above numbers, of csv": of_file(
        "origin goal here\n1 2 5\n2 3 5\n",
        LISTS,
        r"above numbers; pass .*, or (--format csv)",
        then=("ingest a.txt -o g {0} --columns src=origin,dst=goal --json",),
    ),
    "a header above integers": of_file(
        HEADER, LISTS, r"above integer ids; pass (--skip 1)"
    ),
    "a header above integers, of csv": of_file(
        HEADER,
        LISTS,
        r"above integer ids; pass .*, (--format csv)",
        then=("ingest a.txt -o g {0} --columns src=origin,dst=goal --json",),
    ),
    "a header that is ids": of_file(
        HEADER,
        GUARDS,
        r"or (--ids string) if these are ids",
        expected={"num_nodes": 5, "num_edges": 3},
    ),
    "names": of_file(
        "1 -2\n2 3\n", LISTS, r"pass (--ids string)", expected={"num_nodes": 4}
    ),
    "names of integers": of_file(
        "a b\nb c\n",
        LISTS,
        r"pass (--ids string)",
        command="ingest a.txt -o g --ids int",
    ),
    "two types": of_file(
        "".join(f"{n % 50} {n % 37}\n" for n in range(1850)),
        LISTS,
        r"keep them apart with (--edges \S+)",
        code=0,
        then=("ingest {0} -o g2 --json",),
        expected={"num_nodes": 87, "num_edges": 1850},
    ),
    "a comment above": of_file(
        "// made by a tool\n1 2\n2 3\n", GUARDS, r"pass (--skip 1) if it is one"
    ),
    "a comment that is ids": of_file(
        "// a\na b\n",
        GUARDS,
        r"or (--ids string) if these",
        expected={"num_nodes": 3, "num_edges": 2},
    ),
    "a comment in between": of_file(
        "1 2\n// made by a tool\n2 3\n",
        GUARDS,
        r"such lines, (grep -v '\S+') FILE > NEW",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "zeros": of_file(
        "01001 1001\n1001 7\n", GUARDS, r"pass (--ids string) to say so", **WARNED
    ),
    "zeros, as numbers": of_file(
        "01001 1001\n1001 7\n",
        GUARDS,
        r"or (--ids int) to read",
        **WARNED | {"expected": {"num_nodes": 2, "num_edges": 2}},
    ),
    "zeros further down": of_file(
        "1001 7\n" * 2000 + "01001 7\n",
        "datasets/text/layout.py",
        r"pass (--ids string) to keep",
        expected={"num_nodes": 3, "num_edges": 2001},
    ),
    "zeros further down, as numbers": of_file(
        "1001 7\n" * 2000 + "01001 7\n",
        "datasets/text/layout.py",
        r"or (--ids int) to read",
        expected={"num_nodes": 2, "num_edges": 2001},
    ),
    "numbers as names": of_file(
        "+1 2\n2 1.0\n", GUARDS, r"pass (--ids string) to say so", **WARNED
    ),
    "times": of_file(
        "1 2 1400000000\n2 3 1500000000\n",
        GUARDS,
        r"pass (--columns src,dst,time --time-unit s), or",
        code=0,
        then=(
            "ingest a.txt -o g2 {0}",
            '$ grep -q \'"time_unit": *"s"\' g2/graph.json',
            "info g2 --json",
        ),
    ),
    "times that are weights": of_file(
        "1 2 1400000000\n2 3 1500000000\n",
        GUARDS,
        r"or (--columns src,dst,weight)",
        **WARNED,
    ),
    "comments that are edges": of_file(
        "#a b\n#b #c\nb c\n",
        GUARDS,
        r"pass (--format csv --separator space --columns src,dst) if",
        **WARNED | {"expected": {"num_nodes": 5, "num_edges": 3}},
    ),
    "missing ids": of_file(
        "a NA\na b\nb c\n",
        GUARDS,
        r"remove its lines, (grep -vw 'NA') FILE > NEW",
        code=0,
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g2 --json"),
    ),
    "an id that looks missing": of_file(
        "a NA\na b\n", ODD, r"else pass (--ids string)", **WARNED
    ),
    "a header again": of_file(
        "src dst\na b\nsrc dst\nb c\n",
        GUARDS,
        r"remove it: (awk '[^']*') FILE > NEW",
        command="ingest a.txt -o g --format csv",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --format csv --json"),
    ),
    "a header again that is data": of_file(
        "src dst\na b\nsrc dst\nb c\n",
        GUARDS,
        r"pass (--ids string) if it is data",
        command="ingest a.txt -o g --format csv",
        then=("ingest a.txt -o g --format csv {0} --json",),
        expected={"num_nodes": 5, "num_edges": 3},
    ),
    "a separator": of_file(
        "a, b\nb, c\n", DIALECT, r"pass (--separator comma) to say so", **WARNED
    ),
    "a separator of ids": of_file(
        "a, b\nb, c\n",
        DIALECT,
        r"or (--separator space) if",
        **WARNED | {"expected": {"num_nodes": 4, "num_edges": 2}},
    ),
    "an end of lines": of_file(
        "a b;\nb c;\n",
        DIALECT,
        r"remove it, (sed '[^']*') FILE > NEW",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "an end of ids": of_file(
        "a b;\nb c;\n",
        DIALECT,
        r"pass (--separator space) if",
        expected={"num_nodes": 4},
    ),
    "a mark behind ids": of_file(
        "a, b\nb, c, d\n",
        DIALECT,
        r"(--separator space) if it is part",
        files={"a.txt": "a, b\nb, c\nc,, d\n"},
        expected={"num_nodes": 6},
    ),
    "a mark that separates": of_file(
        "Oslo, Rome\nNew York, Rome\nRome, Oslo,\n",
        DIALECT,
        r"pass (--separator comma) if it separates",
        then=("$ sed -i 's/,$//' a.txt", "ingest a.txt -o g {0} --json"),
        expected={"num_nodes": 3, "num_edges": 3},
    ),
    "tabs and blanks": of_file(
        "a x\tb\nb\tc d\n",
        DIALECT,
        r"pass (--separator tab) if ids hold blanks",
        files={"a.txt": "a x\tb\nb y\tc\n"},
        expected={"num_nodes": 4},
    ),
    "tabs and blanks, both": of_file(
        "a x\tb\nb\tc d\n",
        DIALECT,
        r"(--separator space) if not",
        then=("ingest a.txt -o g {0} --columns src,dst,label --json",),
        expected={"num_nodes": 4},
    ),
    "quotes": of_file(
        '"a" "b"\n"b" "c"\n',
        DIALECT,
        r"pass (--format csv --columns src,dst), which takes",
    ),
    "quotes around a header": of_file(
        '"from" "to"\n"a" "b"\n"b" "c"\n', DIALECT, r"pass (--format csv), which takes"
    ),
    "quotes around integers": of_file(
        '"1" "2"\n"2" "3"\n', DIALECT, r"pass (--format csv), which takes"
    ),
    "quotes of ids": of_file(
        '"a" "b"\n"b" "c"\n', DIALECT, r"pass (--separator space) if quotes"
    ),
    "single quotes": of_file(
        "'a' 'b'\n'b' 'c'\n",
        DIALECT,
        r"remove them, (tr -d \S+) < FILE > NEW",
        then=("$ {0} < a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "brackets": of_file(
        "(a, b)\n(b, c)\n",
        DIALECT,
        r"remove them, (tr -d \S+) < FILE > NEW",
        then=("$ {0} < a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "brackets of ids": of_file(
        "(a b)\n(b c)\n",
        DIALECT,
        r"pass (--separator space) if they",
        expected={"num_nodes": 4},
    ),
    "a table of Markdown": of_file(
        "| a | b |\n| b | c |\n",
        DIALECT,
        r"plain columns, (sed -E '.*') FILE > NEW",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "arrows apart": of_file("1 -> 2\n2 -> 3\n", DIALECT, r"pass (--columns src,_,dst) to"),
    "arrows that are nodes": of_file(
        "1 -> 2\n2 -> 3\n",
        DIALECT,
        r"or (--columns src,dst,weight) if",
        expected={"num_nodes": 3},
    ),
    "arrows": of_file(
        "1->2\n2->3\n",
        DIALECT,
        r"by a blank, (sed '[^']*') FILE > NEW",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "arrows of ids": of_file(
        "1->2 a\n2->3 b\n",
        DIALECT,
        r"pass (--separator space) if",
        expected={"num_nodes": 4},
    ),
    "a relation": of_file(
        "1 cites 2\n2 cites 3\n", DIALECT, r"pass (--format triples) if it is a relation"
    ),
    "a word between": of_file(
        "1 cites 2\n2 cites 3\n", DIALECT, r"(--columns src,_,dst) to leave"
    ),
    "lists with a colon": of_file(
        LISTS_OF_NEIGHBORS,
        DIALECT,
        r"remove it, (sed '[^']*') FILE > NEW, and pass (--format adjacency)",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g {1} --json"),
        expected={"num_nodes": 3, "num_edges": 4},
    ),
    "counts": of_file("3 2\n1 2\n2 3\n", "datasets/text/source.py", r"pass (--skip 1), or"),
    "counts that are an edge": of_file(
        "3 2\n1 2\n2 3\n",
        "datasets/text/source.py",
        r"or (--columns src,dst) if",
        expected={"num_nodes": 3, "num_edges": 3},
    ),
    "a third column": of_file(
        THIRDS,
        "datasets/text/third_column.py",
        r"say which: (--columns src,dst,weight)",
        expected={"num_nodes": 41, "num_edges": 40},
    ),
    "a third column of times": of_file(
        THIRDS,
        "datasets/text/third_column.py",
        r"\(or (src,dst,time)\), --columns",
        then=("ingest a.txt -o g --columns {0} --json",),
        expected={"num_nodes": 41, "num_edges": 40},
    ),
    "a first column": of_file(
        THIRDS,
        "datasets/text/third_column.py",
        r"(--columns relation,src,dst), or",
        expected={"num_nodes": 41, "num_edges": 40},
    ),
    "a column of relations": of_file(
        THIRDS,
        "datasets/text/third_column.py",
        r"or (--format triples) for",
        expected={"num_nodes": 40, "num_edges": 40},
    ),
    "a bad line below a header": of_file(
        "3 3\na b\nb c\n",
        "datasets/text/source.py",
        r"pass (--skip 1)",
    ),
    "files of names and of integers": of_file(
        "1 2\n2 3\n",
        "datasets/text/source.py",
        r"pass (--ids string) to take all",
        files={"a.txt": "1 2\n", "b.txt": "a b\n"},
        command="ingest a.txt b.txt -o g",
        then=("ingest a.txt b.txt -o g {0} --json",),
        expected={"num_nodes": 4, "num_edges": 2},
    ),
    "not UTF-8": of_file(
        "caf\u00e9 a\nb caf\u00e9\n".encode("latin-1"),
        "datasets/text/first_lines.py",
        r"with (iconv -f \S+ -t \S+)",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "not UTF-8 further down": of_file(
        b"b a\n" * 2000 + "b caf\u00e9\n".encode("latin-1"),
        "datasets/text/lines.py",
        r"with (iconv -f \S+ -t \S+)",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
        expected={"num_nodes": 3, "num_edges": 2001},
    ),
    "UTF-16": of_file(
        "1 2\n2 3\n".encode("utf-16"),
        "datasets/files.py",
        r"with iconv, (iconv -f \S+ -t \S+) FILE > NEW",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "binary": of_file(
        "1 2\n2 3\n",
        "datasets/text/first_lines.py",
        r"name the format with (--format)",
        before=(
            (
                "$ {python} -c 'import numpy as n, scipy.io as s; "
                's.savemat("a.mat", dict(A=n.eye(3, k=1)))\''
            ),
            "$ mv a.mat a.txt",
        ),
        then=("ingest a.txt -o g {0} mat --json",),
    ),
    "UTF-16 without its mark": of_file(
        "alice bob\nbob carol\n".encode("utf-16-le"),
        "datasets/text/foreign.py",
        r"convert it, (iconv -f \S+ -t \S+) FILE > NEW",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g --json"),
    ),
    "lists below comments": of_file(
        "# a\nb 1.5\n# b\nc 2\n",
        GUARDS,
        r"an edge, (awk '[^']+') FILE > NEW, and pass (--undirected)",
        then=("$ {0} a.txt > b.txt", "ingest b.txt -o g {1} --json"),
    ),
    "a file of LGL": of_file(
        "",
        "datasets/other_formats.py",
        r"an edge, (awk '[^']+') FILE > NEW.txt, and pass (--undirected)",
        files={"a.lgl": "# a\nb 1.5\n# b\nc 2\n"},
        command="ingest a.lgl -o g",
        then=("$ {0} a.lgl > b.txt", "ingest b.txt -o g {1} --json"),
    ),
    "single quotes in CSV": of_file(
        "",
        "datasets/readers/delimited.py",
        r"or pass (--ids string) if they are part",
        files={"a.csv": "'src','dst'\n'a','b'\n"},
        command="ingest a.csv -o g",
        then=("ingest a.csv -o g {0} --columns src,dst --json",),
        expected={"num_nodes": 4, "num_edges": 2},
    ),
    "a title above the header": of_file(
        "",
        "datasets/readers/delimited.py",
        r"below 'My links,'; pass (--skip 2)",
        files={"a.csv": "My links,\n\nsource,target\na,b\nb,c\n"},
        command="ingest a.csv -o g",
        then=("ingest a.csv -o g {0} --json",),
    ),
    "words above integers": of_file(
        "Nodes: 3\nEdges: 2\n1 2\n2 3\n",
        GUARDS,
        r"above integer ids; pass (--skip 2)",
    ),
    "weights first": of_file(
        "0.5 1 2\n0.7 2 3\n", GUARDS, r"pass (--columns weight,src,dst)"
    ),
    "an id beyond 2^63 below others": of_file(
        "1 2\n2 12345678901234567890\n",
        "datasets/text/source.py",
        r"or pass (--ids string) if ids are names",
    ),
    "two marks": of_file(
        "A;B;0,5\nB;C;1,5\n",
        DIALECT,
        r"pass (--separator semicolon), or",
        then=("$ sed 's/,/./g' a.txt > b.txt", "ingest b.txt -o g {0} --json"),
    ),
    "parquet": of_file(
        "1 2\n2 3\n",
        "datasets/text/foreign.py",
        r"pass (--format) parquet",
        files={"a.csv": "src,dst\n1,2\n2,3\n"},
        before=(
            (
                "$ {python} -c 'import pyarrow.csv as c, pyarrow.parquet as p; "
                'p.write_table(c.read_csv("a.csv"), "a.txt", compression="NONE")\''
            ),
        ),
        then=("ingest a.txt -o g {0} parquet --json",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_advised_about_text_leads_somewhere_right(
    name: str, follow: Follow
) -> None:
    follow(CASES[name])
