"""All settings of a config class, as a commented TOML file and as Markdown."""

import dataclasses
import json
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphsys.core.config import to_toml

_GROUPS: Final = (
    "",
    "Task",
    "Model",
    "Features",
    "Sampling",
    "Loss",
    "Negatives",
    "Edges",
    "Start",
    "Training",
    "Evaluation",
    "Machine",
)
"""Headings in their order; settings of tables have none."""
_RESUMABLE: Final = "A resume may change it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting, as a user reads of it.

    Attributes:
        name: Its key.
        kind: What values it takes: ``an int >= 1``, ``one of a, b``.
        default: Its default as TOML, or "" where it is unset.
        help: A sentence.
        group: Heading that it stands under.
        applies: What it belongs to, or "".
        tables: Settings of its tables, where it consists of such.
        is_list: Whether those tables are a list, not by name.
        is_resumable: Whether a resume may change it.
    """

    name: str
    kind: str
    default: str
    help: str
    group: str
    applies: str
    tables: tuple["Setting", ...] = ()
    is_list: bool = False
    is_resumable: bool = False


def settings_of(cls: type) -> list[Setting]:
    """Return the settings of a config class, in its order, those of a group together."""
    hints = typing.get_type_hints(cls)
    found = [_setting(field, hints[field.name]) for field in dataclasses.fields(cls)]
    return sorted(found, key=lambda setting: _GROUPS.index(setting.group))


def as_toml(cls: type, command: str) -> str:
    """Write all settings with their defaults as TOML that ``--config`` takes back.

    Args:
        cls: The config class; all of its settings have defaults.
        command: The command that takes it.
    """
    lines = [
        f"# Settings of `{command}` with their defaults.",
        "# Keep what you change in a file of your own and give it to --config FILE,",
        "# or change one on the command line: --set KEY=VALUE.",
    ]
    for group, settings in _groups(cls):
        lines += ["", f"# ---- {group} ----"]
        for setting in settings:
            lines += ["", *_comment(_told(setting))]
            lines += _tables(setting) if setting.tables else [_line(setting)]
    return "\n".join(lines) + "\n"


def as_markdown(cls: type, command: str) -> str:
    """Write all settings as a page.

    Args:
        cls: The config class.
        command: The command that takes them.
    """
    lines = [
        f"# Settings of `{command}`",
        "",
        f"`{command} --settings` prints them as a TOML file that `--config` takes",
        "back; `--set KEY=VALUE` changes one. `scripts/settings_pages` writes this page.",
    ]
    for group, settings in _groups(cls):
        lines += ["", f"## {group}", "", "| key | default | values | |", "| --- " * 4 + "|"]
        lines += [row for setting in settings for row in _rows(setting)]
    return "\n".join(lines) + "\n"


def _groups(cls: type) -> Iterator[tuple[str, list[Setting]]]:
    by_group: dict[str, list[Setting]] = {}
    for setting in settings_of(cls):
        by_group.setdefault(setting.group, []).append(setting)
    yield from by_group.items()


def _setting(field: "dataclasses.Field[Any]", hint: Any) -> Setting:
    told = field.metadata
    inner, is_list = _table_of(hint)
    return Setting(
        name=field.name,
        kind=_kind(hint, told),
        default=_default(field),
        help=told["help"],
        group=told.get("group", ""),
        applies=told.get("applies", ""),
        tables=tuple(settings_of(inner)) if inner else (),
        is_list=is_list,
        is_resumable=told.get("resumable", False),
    )


def _table_of(hint: Any) -> tuple[type | None, bool]:
    """Return the config class of a setting's tables, and whether they are a list."""
    for argument in typing.get_args(hint):
        if dataclasses.is_dataclass(argument):
            return typing.cast("type", argument), typing.get_origin(hint) is tuple
    return None, False


def _kind(hint: Any, limits: Mapping[str, Any]) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _kind(next(a for a in arguments if a is not type(None)), limits)
    if limits.get("choices"):
        file = ", FILE.py:NAME" if limits.get("takes_files") else ""
        return f"one of {', '.join(limits['choices']())}{file}"
    if origin is typing.Literal:
        return f"one of {', '.join(arguments)}"
    if dataclasses.is_dataclass(next(iter(arguments[-1:]), None)) or _table_of(hint)[0]:
        return "tables"
    if origin is Mapping:
        return "numbers by name"
    if origin is tuple:
        return f"a list of {'numbers' if arguments[0] is int else 'strings'}"
    bounds = [("minimum", ">="), ("above", ">"), ("maximum", "<=")]
    signs = [f"{sign} {limits[n]:g}" for n, sign in bounds if limits.get(n) is not None]
    names = {int: "an int", float: "a number", bool: "true or false", str: "a string"}
    return " ".join([names.get(hint, "a value"), *signs])


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is None or field.default is field.default_factory:  # None, required
        return ""
    if field.default is dataclasses.MISSING:
        return "{}"
    made = dataclasses.make_dataclass("Made", [("value", Any, field.default)])()
    return to_toml(made).strip().removeprefix("value = ")


def _told(setting: Setting) -> str:
    parts = [setting.help, f"{setting.kind[:1].upper()}{setting.kind[1:]}."]
    if setting.applies:
        parts.append(f"For {setting.applies}.")
    if setting.is_resumable:
        parts.append(_RESUMABLE)
    return " ".join(parts)


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, 86, break_on_hyphens=False)]


def _line(setting: Setting) -> str:
    if setting.default:
        return f"{setting.name} = {setting.default}"
    return f"# {setting.name} =    (unset)"


def _tables(setting: Setting) -> list[str]:
    name = f"[[{setting.name}]]" if setting.is_list else f"[{setting.name}.NAME]"
    lines = [f"# {name}"]
    for inner in setting.tables:
        default = inner.default or "..."
        lines += _comment(f"{inner.name} = {default}    {_told(inner)}")
    return lines


def _rows(setting: Setting, prefix: str = "") -> Iterator[str]:
    told = setting.help + (f" For {setting.applies}." if setting.applies else "")
    told += f" {_RESUMABLE}" if setting.is_resumable else ""
    shown = f"`{setting.default}`" if setting.default else "unset"
    cells = (f"`{prefix}{setting.name}`", shown, setting.kind, told)
    yield f"| {' | '.join(cell.replace('|', json.dumps('|')[1:-1]) for cell in cells)} |"
    inner = f"{setting.name}[]." if setting.is_list else f"{setting.name}.NAME."
    for one in setting.tables:
        yield from _rows(one, prefix + inner)
