"""Options from a signature and a docstring, against what typer makes of them."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from graphsys.cli.help_pages.declarations import described


def invoked(command: Any, *words: str) -> Any:
    """Return what a command line of one command prints."""
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command)
    return CliRunner().invoke(app, words)


def greet(
    count: int, out: Path | None = None, format_: str = "csv", loud: bool = False
) -> None:
    """Greet the world.

    Often.

    Options:
        -n, --count N>=1: How often; a sentence that goes
            on in the next line: here.

    Output:
        -o, --out FILE: The file.
        --format NAME: How.
        --loud: Shout.
    """
    typer.echo(f"{count} {out} {format_} {loud}")


def test_a_command_takes_what_its_docstring_describes() -> None:
    command = described(greet)
    assert command.__doc__ == "Greet the world.\n\nOften."
    done = invoked(command, "-n", "2", "--out", "x", "--loud", "--format", "tsv")
    assert done.output == "2 x tsv True\n"
    assert invoked(command, "-n", "0").exit_code == 2
    page = " ".join(invoked(command, "--help").output.split())
    assert "How often; a sentence that goes on in the next line: here." in page
    assert "--count N" in page

    @partial(described, like=[command])
    def other(loud: bool = False) -> None:
        """Do as the other."""
        typer.echo(f"{loud}")

    assert invoked(other, "--loud").output == "True\n"
    assert "Shout." in invoked(other, "--help").output


def test_a_parameter_without_a_line_and_a_line_without_a_parameter_are_noticed() -> None:
    def nothing(loud: bool = False) -> None:
        """Say nothing."""

    def all_(loud: bool = False) -> None:
        """Say all.

        Options:
            --loud: Shout.
            --quiet: Do not.
        """

    with pytest.raises(TypeError, match="nothing: no line describes --loud"):
        described(nothing)
    with pytest.raises(TypeError, match="all_: no parameter for quiet"):
        described(all_)


def test_a_command_without_docstrings_has_its_options() -> None:
    """So it is under ``python -OO``."""

    def bare(max_words: int = 3, format_: str = "csv") -> None:
        typer.echo(f"{max_words} {format_}")

    done = invoked(described(bare), "--max-words", "4", "--format", "tsv")
    assert done.output == "4 tsv\n"
