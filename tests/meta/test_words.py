"""Names are made of the field's words: what GLOSSARY.md says is so, and stays so."""

import ast
import re
from collections import defaultdict
from functools import cache

from tests.conftest import ROOT
from tests.meta.test_tree import sources

GLOSSARY = ROOT / "graphsys" / "GLOSSARY.md"
MOST_TWINS = 9
"""Class names that two modules may share: phases of programs, private ones."""


@cache
def tables() -> tuple[dict[str, str], dict[str, str]]:
    """Return terms with their meanings, and words that are not used with what is."""
    terms, _, banned = GLOSSARY.read_text().partition("## Not used in names")
    rows = [
        dict(re.findall(r"(?m)^\| ([a-z_, -]+) \| (.+) \|$", part))
        for part in (terms, banned)
    ]
    heads = ("term", "word", "---")
    return tuple({k: v for k, v in found.items() if k not in heads} for found in rows)  # type: ignore[return-value]


@cache
def classes() -> dict[str, list[str]]:
    """Return the names of classes, each with the modules that define it."""
    found = defaultdict(list)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(ROOT)))
    return found


def words_of_classes() -> dict[str, str]:
    """Return the words in names of classes, in small letters, each with one such name."""
    parts = re.compile(r"[A-Z][a-z]+|[A-Z]+(?![a-z])")
    return {word.lower(): name for name in classes() for word in parts.findall(name)}


def words_of_paths() -> dict[str, str]:
    """Return the words in paths, each with one such path."""
    names = [str(path.relative_to(ROOT).with_suffix("")) for path in sources()]
    return {word: name for name in names for word in re.split(r"[/_]", name)}


def test_words_of_a_private_language_are_in_no_name() -> None:
    used = words_of_classes() | words_of_paths()
    assert {word: used[word] for word in tables()[1] if word in used} == {}


def test_every_term_is_used() -> None:
    used = {*words_of_classes(), *words_of_paths()}
    used |= {f"{word}s" for word in used} | {word.removesuffix("s") for word in used}
    text = " ".join(path.read_text() for path in sources())
    unused = {
        term
        for term in tables()[0]
        if not {*term.split(", ")} & used and not re.search(rf"\b{term}\b", text)
    }
    assert unused == set()


def test_a_term_has_one_meaning_of_a_line() -> None:
    terms, _ = tables()
    assert len(terms) >= 60
    assert all(len(meaning.split()) <= 25 for meaning in terms.values())


def test_few_classes_share_a_name() -> None:
    twins = {name: where for name, where in classes().items() if len(where) > 1}
    assert len(twins) <= MOST_TWINS, twins
