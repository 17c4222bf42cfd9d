"""The ``graphsys`` command: the list of verbs, and what becomes of their errors.

Exit codes: 0 done; 1 the run failed or found a fault; 2 bad input, with one ``error:``
line on stderr; 130 after Ctrl-C. What is not a mistake of the user's is a fault of ours
and shows its traceback.
"""

import errno
import gc
import io
import os
import re
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from graphsys.cli import (
    dataset,
    evaluate,
    export,
    info,
    ingest,
    nearest,
    partition,
    plot,
    predict,
    profile,
    run,
    split,
    train,
    tune,
    verify,
)
from graphsys.cli.console import (
    forget_interruption,
    print_error,
    print_interrupted,
    print_note,
)
from graphsys.cli.deltas import append, compact
from graphsys.cli.help_pages.algorithms import AlgorithmVerb
from graphsys.cli.help_pages.verbs import Verb, VerbGroup
from graphsys.cli.machine import doctor, plan
from graphsys.cli.mining import by_options
from graphsys.cli.options import examples
from graphsys.cli.progress import CompileNotice, LogProgress
from graphsys.core.errors import (
    ConfigError,
    GraphsysError,
    told_with_place,
    user_place,
    why_not_written,
)
from graphsys.core.plain_files import OUT_OF_FILES
from graphsys.core.remote.locations import show_progress
from graphsys.kernels.kernel_log import tell_when_compiling

_PLACES = (
    errno.ENOENT,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)
_TARGETS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
_INTERRUPTED = 130
_NOTHING_KEPT = "nothing of this command is kept, and what there was before stays as it was"
_NO_THREAD = "can't start new thread"
_NO_MEMORY = "can't allocate memory"  # torch's

app = typer.Typer(
    name="graphsys",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "graphsys dataset build demo -o demo --partitions 4",
        "graphsys train embedding demo -o run --preset demo-complex",
        "graphsys evaluate run",
    ),
)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error; may stand anywhere."),
    ] = False,
) -> None:
    """Store, compute on, embed and query graphs that are larger than memory."""
    context.obj = perform  # for verbs that run other verbs
    if version:
        from importlib.metadata import version as version_of

        sys.stdout.write(f"graphsys {version_of('graphsys')}\n")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


_KINDS = {"run": AlgorithmVerb, "profile": profile.ProfileVerb}
app.add_typer(dataset.app, name="dataset", rich_help_panel="Data")
for _panel, _name, _verb, _epilog in (
    ("Data", "ingest", ingest.ingest, ingest.EPILOG),
    ("Data", "split", split.split, split.EPILOG),
    ("Data", "append", append.append, append.EPILOG),
    ("Data", "compact", compact.compact, compact.EPILOG),
    ("Data", "info", info.info, info.EPILOG),
    ("Data", "verify", verify.verify, verify.EPILOG),
    ("Data", "partition", partition.partition, partition.EPILOG),
    ("Algorithms", "run", run.run, run.EPILOG),
    ("Embeddings", "evaluate", evaluate.evaluate, evaluate.EPILOG),
    ("Embeddings", "predict", predict.predict, predict.EPILOG),
    ("Embeddings", "nearest", nearest.nearest, nearest.EPILOG),
    ("Embeddings", "export", export.export, export.EPILOG),
    ("Embeddings", "plot", plot.plot, plot.EPILOG),
    ("Machine", "profile", profile.profile, profile.EPILOG),
    ("Machine", "doctor", doctor.doctor, doctor.EPILOG),
    ("Machine", "plan", plan.plan, plan.EPILOG),
):
    _kind = _KINDS.get(_name, Verb)
    app.command(_name, cls=_kind, epilog=_epilog, rich_help_panel=_panel)(_verb)
app.add_typer(by_options.app, name="mine", rich_help_panel="Algorithms")
app.add_typer(train.app, name="train", rich_help_panel="Embeddings")
app.command("tune", cls=Verb, epilog=tune.EPILOG, rich_help_panel="Embeddings")(tune.tune)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: What follows the program's name; by default that of the process.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    is_debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    warnings.showwarning = _show_warning
    _warned.clear()
    # compiling and importing make many objects that stay: looking for garbage after every
    # 700, as Python does, took a tenth of a short command
    gc.set_threshold(50_000, 20, 50)
    _prepare_streams()
    forget_interruption()
    tell_when_compiling(CompileNotice())
    show_progress(LogProgress)  # beside a bar of the work itself there may be no other
    global _is_debug
    _is_debug = is_debug
    return perform(arguments)[0]


_is_debug = False
"""Whether errors keep their traceback, those of a command inside another too."""


def perform(arguments: Sequence[str]) -> tuple[int, str | None]:
    """Run a command line; print what went wrong.

    Args:
        arguments: What follows the program's name.

    Returns:
        The exit code, and the error message where there is one.
    """
    try:
        return _run(list(arguments))
    except KeyboardInterrupt:
        print_interrupted(_NOTHING_KEPT)
        return 130, None
    except BrokenPipeError:
        return _end_quietly(), "the reader of stdout went away"
    except Exception as err:
        message = None if _is_debug else _describe(err)
        if message is None:
            raise
        print_error(message)
        return err.exit_code if isinstance(err, GraphsysError) else 2, message


def _run(arguments: list[str]) -> tuple[int, str | None]:
    for option, value in pairwise((*arguments, "end")):
        # the empty name would be that of the current folder
        if option == "--out=" or (option in ("-o", "--out") and not value):
            raise ConfigError(
                f"{option.rstrip('=')}: got an empty name, expected where to write; if it "
                "is of a variable, set that"
            )
    command = typer.main.get_command(app)
    try:
        code = command.main(arguments, prog_name="graphsys", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as err:
        message = _usage_message(err)
        print_error(message)
        return 2, message
    except typer.Abort:
        raise KeyboardInterrupt from None
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return int(code or 0), None


def _usage_message(err: typer.TyperException) -> str:
    """Say what is wrong with a command line, and where its help is."""
    message = err.format_message().strip().rstrip(".")
    message = message.replace(". Did you mean", "; did you mean")
    context = getattr(err, "ctx", None)
    path = context.command_path if context is not None else "graphsys"
    message = message[:1].lower() + message[1:]
    if _is_algorithm(message):
        return f"{message}; algorithms are run by graphsys run NAME"
    if path == "graphsys run" and (name := _parameter_in(message)):
        message = message.partition(" (Possible")[0]
        return f"{message}; what an algorithm takes is given as --param {name}=VALUE"
    if path.endswith(" by-options"):  # of a command that is not shown
        path = "graphsys mine"
        if message.startswith("got unexpected extra"):
            return f"{message}; write {path} count GRAPH PATTERN, or see {path} --help"
    return f"{message}; see {path} --help"


def _parameter_in(message: str) -> str:
    """Return a parameter that was given as an argument or an option, or nothing."""
    found = re.match(r"(got unexpected extra|no such option:).*? (\(|--)([\w-]+)", message)
    if found is None:
        return ""
    from graphsys.engine.algorithms import ALGORITHMS

    name = found[3].replace("-", "_")
    is_known = any(name in entry.parameters() for entry in ALGORITHMS.values())
    return name if is_known else ""


def _is_algorithm(message: str) -> bool:
    """Whether what was taken for a command is an algorithm."""
    found = re.match(r"no such command '(\w+)'", message)
    if found is None:
        return False
    from graphsys.engine.algorithms import ALGORITHMS

    return found[1] in ALGORITHMS


def _describe(err: Exception) -> str | None:
    """Return the message of an error that a user can mend; None for one of ours."""
    if _is_out_of_files(err):
        return (
            f"too many open files: a process may open {_limit('RLIMIT_NOFILE')} here; "
            "allow more with `ulimit -n 1024`"
        )
    if (place := user_place(err)) is not None:
        return told_with_place(err, place)
    if isinstance(err, GraphsysError):
        return str(err)
    if isinstance(err, UnicodeEncodeError) and err.reason == "surrogates not allowed":
        return f"{err.object!a}: the name is not UTF-8; choose another"
    if isinstance(err, RuntimeError) and _NO_THREAD in str(err):
        return (
            "cannot start a thread: a user may run "
            f"{_limit('RLIMIT_NPROC')} here; allow more with `ulimit -u`"
        )
    if isinstance(err, MemoryError) or _NO_MEMORY in str(err):
        return "out of memory; lower --memory, or end what else fills this machine"
    if isinstance(err, OSError) and err.errno in _TARGETS:
        where = f"{err.filename}: " if err.filename else ""
        return f"{where}{why_not_written(err)}"
    if isinstance(err, OSError) and err.errno in _PLACES and err.filename is not None:
        return f"{err.filename}: {os.strerror(err.errno).lower()}"
    return None


def _is_out_of_files(err: BaseException | None) -> bool:
    """Whether the limit of open files is behind an error, whatever was made of it."""
    while err is not None:
        if isinstance(err, OSError) and err.errno in OUT_OF_FILES:
            return True
        if isinstance(err, ImportError) and os.strerror(errno.EMFILE) in str(err):
            return True
        err = err.__cause__ or err.__context__
    return False


def _limit(name: str) -> str:
    """Return a limit of this process, for messages."""
    import resource

    number = resource.getrlimit(getattr(resource, name))[0]
    return "any number" if number == resource.RLIM_INFINITY else f"{number:,}"


def _prepare_streams() -> None:
    """Print what an encoding lacks as escapes, and to nowhere what has no stream."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _end_quietly() -> int:
    """End after the reader of stdout went away (``| head``), without a traceback."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


_warned: set[str] = set()
"""What this command has warned of: its trials, and plans of it, would say the same."""


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    text = " ".join(str(message).split())
    if text not in _warned:
        _warned.add(text)
        print_note(f"warning: {text}")


if __name__ == "__main__":
    sys.exit(main())
