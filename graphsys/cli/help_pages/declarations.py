"""Options of a command, declared by its signature and described in its docstring.

The signature says of an option its type and its default, the docstring all that people
read: below the text a section for each group of options, and in it a line for each.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, TypeVar, get_origin

import typer

Command = TypeVar("Command", bound=Callable[..., Any])

_SECTION: Final = re.compile(r"^([A-Z][\w ]*):$")
_OPTION: Final = re.compile(r"^    ((?:-\S+, )*-\S+(?: \S+)?): (.*)$")
_OTHER: Final = "Options"  # those of no group


def option(spec: str, text: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option for ``Annotated``.

    Args:
        spec: Its names and what stands for its value: ``"-k, --top-k N>=1"``, where the
            least value is 1, or ``"--json"`` of one that has none.
        text: What it means.
        panel: The group that it is shown in.
        **more: Further arguments of ``typer.Option``.
    """
    names, value = _parted(spec)
    metavar, _, least = value.partition(">=")
    return typer.Option(
        *sorted(names, key=len, reverse=True),
        metavar=metavar or None,
        min=int(least) if least else None,
        help=text,
        rich_help_panel=panel,
        **more,
    )


def _parted(spec: str) -> tuple[list[str], str]:
    """Return names, and what stands for the value, "" where there is none."""
    words = spec.split(" ")
    value = "" if words[-1].startswith("-") else words.pop()
    return [word.rstrip(",") for word in words], value


def described(command: Command, *, like: Sequence[Callable[..., Any]] = ()) -> Command:
    """Return a command whose docstring describes its options; its help is the text above.

    Args:
        command: A function. Of every parameter that is not ``Annotated``, a section of the
            docstring has a line of :func:`option`'s form: ``--max-edges N: Most edges.``
        like: Commands that describe the others, by their parameters' names.

    Raises:
        TypeError: A parameter has no such line, or a line no parameter.

    Examples:
        >>> @described
        ... def greet(max_words: int = 3) -> None:
        ...     '''Greet the world.
        ...
        ...     Output:
        ...         --max-words N>=1: Most words.
        ...     '''
        >>> greet.__doc__
        'Greet the world.'
        >>> greet.__annotations__["max_words"].__metadata__[0].help
        'Most words.'
    """
    is_stripped = command.__doc__ is None  # python -OO: options have names alone
    text, lines = _taken_apart(inspect.cleandoc(command.__doc__ or ""))
    for name, parameter in inspect.signature(command).parameters.items():
        kind, key = parameter.annotation, name.rstrip("_")
        if kind is typer.Context or get_origin(kind) is Annotated:
            continue
        if is_stripped:
            lines[key] = (f"--{key.replace('_', '-')}", "", None)
        if key in lines:
            command.__annotations__[name] = Annotated[kind, option(*lines.pop(key))]
            continue
        known = [it.__annotations__[name] for it in like if name in it.__annotations__]
        if not known:
            raise TypeError(f"{command.__name__}: no line describes --{name}")
        command.__annotations__[name] = known[0]
    if lines:
        raise TypeError(f"{command.__name__}: no parameter for {', '.join(lines)}")
    command.__doc__ = text or None
    return command


def _taken_apart(text: str) -> tuple[str, dict[str, tuple[str, str, str | None]]]:
    """Return what stands above the sections; spec, text and panel by parameter."""
    above: list[str] = []
    found: dict[str, tuple[str, str, str | None]] = {}
    panel, name = None, ""
    for line in text.splitlines():
        if section := _SECTION.match(line):
            panel, name = section[1], ""
        elif panel is None:
            above.append(line)
        elif begun := _OPTION.match(line):
            name = max(_parted(begun[1])[0], key=len).lstrip("-").replace("-", "_")
            found[name] = (begun[1], begun[2], None if panel == _OTHER else panel)
        elif name:
            spec, told, group = found[name]
            found[name] = (spec, f"{told} {line.strip()}".strip(), group)
    return "\n".join(above).strip(), found
