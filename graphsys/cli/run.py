"""``graphsys run``: an algorithm or a user's vertex program over a graph."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsys.cli.console import (
    print_facts,
    print_json,
    print_note,
    print_table,
    telling_what_is_kept,
    visible,
)
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import (
    ClusterOption,
    DeviceOption,
    JsonOption,
    NameColumnOption,
    OverwriteOption,
    SafeCellsOption,
    TableOption,
    ThreadsOption,
    examples,
)
from graphsys.cli.results import (
    STDOUT,
    FormatOption,
    check_target,
    print_preview,
    write_run,
)

if TYPE_CHECKING:
    from graphsys.distributed.run import ClusterRun
    from graphsys.engine.native_plan import NativeRun
    from graphsys.engine.program_run import ProgramRun
    from graphsys.engine.result import Result
    from graphsys.storage.reader import GraphReader

EPILOG = examples(
    "graphsys run --list",
    "graphsys run pagerank --help",
    "graphsys run pagerank web -o ranks.parquet --param damping=0.9",
    "graphsys run pagerank web",
    "graphsys run pagerank web -o now.parquet --from ranks.parquet",
    "graphsys run bfs web -o hops.csv --param source=42",
    "graphsys run bfs cities -o hops.csv --param source=Berlin --name-column name",
    "graphsys run betweenness web -o - --param sources=42,17 --format csv | head",
    "graphsys run my_program.py:MyProgram web -o out.parquet --memory 4GB",
    "graphsys run pagerank web -o ranks.parquet --cluster local:2",
)

ALGORITHM = "Algorithm"


def _complete_algorithm(incomplete: str) -> list[str]:
    from graphsys.engine.algorithms import ALGORITHMS

    return [name for name in ALGORITHMS if name.startswith(incomplete)]


@described
def run(
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="ALGORITHM",
            help="A name from --list, or file.py:Class.",
            show_default=False,
            autocompletion=_complete_algorithm,
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Argument(
            metavar="GRAPH", help="A graph's folder, or s3://...", show_default=False
        ),
    ] = None,
    out: TableOption = None,
    param: list[str] | None = None,
    implementation: str | None = None,
    from_: Path | None = None,
    name_column: NameColumnOption = None,
    max_supersteps: int | None = None,
    require_convergence: bool = False,
    device: DeviceOption = "cpu",
    strategy: str | None = None,
    device_memory: str | None = None,
    memory: str | None = None,
    threads: ThreadsOption = None,
    checkpoint: Path | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    explain: bool = False,
    cluster: ClusterOption = None,
    check: bool = False,
    list_: bool = False,
    format_: FormatOption = None,
    overwrite: OverwriteOption = False,
    safe_cells: SafeCellsOption = False,
    json: JsonOption = False,
) -> None:
    """Run an algorithm, or a vertex program of your own, over a graph.

    Algorithm:
        --param NAME=VALUE: Set a parameter, for example source=42; may be repeated. Several
            nodes: sources=42,17, or sources=@FILE of one id per line.
        --implementation NAME: native or program; the faster that fits by default.
        --from FILE: Go on from what this command wrote of the graph before the last
            appends: a .parquet or .arrow file.
        --max-supersteps N: Run so many supersteps at most, fewer or more than by default.
        --require-convergence: Fail (exit code 1) where a limit ended the run.
        --list: List the algorithms and end.

    Run:
        --strategy NAME: How CUDA threads share rows: auto, thread, warp, block, twc or
            edge; or fused: many supersteps in one launch.
        --device-memory SIZE: Most memory to use on the device; what is free there by
            default.
        --memory SIZE: Most memory to use, of the whole process; a larger graph is streamed,
            what cannot be is refused.
        --checkpoint FOLDER: Keep the state of a vertex program here, to --resume from.
        --checkpoint-every N: Supersteps between two checkpoints.
        --resume: Go on from the checkpoint, if there is one.
        --explain: Say how it would be run and why, and do not run it.
        --check: Test the program's combine on regrouped messages (slow).
    """
    import graphsys
    from graphsys.cli.progress import open_progress
    from graphsys.core.errors import ConfigError

    if list_:
        list_algorithms(as_json=json)
        return
    if algorithm is None or graph is None:
        raise ConfigError("give ALGORITHM and GRAPH; graphsys run --list shows the names")
    check_target(out, format_, overwrite=overwrite, as_json=json)
    work = _RunRequest(algorithm, param or [], implementation, cluster)
    settings: dict[str, Any] = {
        "memory": memory,
        "last": from_,
        "device": None if device == "cpu" else device,
        "strategy": strategy,
        "device_memory": device_memory,
        "max_supersteps": max_supersteps,
        "require_convergence": require_convergence or None,
        "checkpoint": checkpoint,
        "checkpoint_every": checkpoint_every,
        "resume": resume or None,
        "check": check or None,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    settings["num_threads"] = threads
    if name_column is not None and cluster is not None:
        raise ConfigError("--name-column does not go with --cluster; leave out one of them")
    if name_column is not None and from_ is not None:
        raise ConfigError("--name-column does not go with --from; leave out one of them")
    if explain:
        with graphsys.open(graph) as opened:
            print_explanation(work.prepare(opened, settings), algorithm, as_json=json)
        return
    if out is None and json and not work.has_answer:
        raise ConfigError(
            f"{algorithm} gives a value per node: name a file with --out FILE; --json is "
            "about the run alone"
        )
    with (
        telling_what_is_kept(lambda: _kept(checkpoint)),
        graphsys.open(graph) as opened,
    ):
        named = opened if name_column is None else opened.named_by(name_column)
        done = work.prepare(named, settings).run(open_progress())
    if out is None and done.pieces is not None:
        _ = done.table  # says that it is too large for one
    if out is not None:
        done = write_run(done, out, format_, overwrite=overwrite)
    if done.warning is not None:
        print_note(f"warning: {done.warning}")
    if out != STDOUT:
        print_run(done, algorithm, out, as_json=json)
    if not json and done.pieces is None and not len(done):
        print_note("no rows: nothing was found that could be listed")
    elif out is None and not json:
        print_preview(done.table, work.shown)


def _kept(checkpoint: Path | None) -> str:
    """Return what an interrupted run left, and how to go on."""
    from graphsys.engine.execute.checkpoint_place import has_checkpoint

    if checkpoint is None:
        return "nothing is kept; vertex programs keep their state with --checkpoint FOLDER"
    if not has_checkpoint(checkpoint):
        return f"{checkpoint} holds no checkpoint yet, nothing is kept"
    return f"{checkpoint} keeps the last checkpoint; go on by the same command and --resume"


class _RunRequest:
    """What a command line asks for: a listed algorithm or a program from a file."""

    def __init__(
        self, name: str, pairs: list[str], implementation: str | None, cluster: str | None
    ) -> None:
        from graphsys.core.errors import ConfigError
        from graphsys.engine.algorithms import Algorithm, get
        from graphsys.engine.load_program import load_program
        from graphsys.engine.parameters import parse_parameters
        from graphsys.engine.program import VertexProgram, parameter_types

        self.listed: Algorithm | None = None
        self.program: VertexProgram | None = None
        self.name = name
        self.cluster = cluster
        self.implementation = implementation
        if cluster is not None and ".py" not in name:
            from graphsys.distributed.run import implementation_for

            self.implementation = implementation_for(get(name), implementation)
        if ".py" in name and implementation == "native":
            raise ConfigError(
                "a program of your own does not go with --implementation native; leave it "
                "out"
            )
        if ".py" in name:
            kind: type[VertexProgram] = load_program(name)
            self.parameters = parse_parameters(pairs, parameter_types(kind), kind.__name__)
            self.program = kind(**self.parameters)
            self.has_answer = kind.answer is not VertexProgram.answer
            self.shown = "stored"
        else:
            self.listed = get(name)
            self.has_answer = self.listed.has_answer
            self.shown = self.listed.shown
            known = self.listed.parameters(self.implementation)
            self.parameters = parse_parameters(pairs, known, name)

    def prepare(
        self, graph: "GraphReader", settings: dict[str, Any]
    ) -> "NativeRun | ProgramRun | ClusterRun":
        """Decide what will run and how; ``--explain`` and a run have this in common."""
        from graphsys.core.errors import ConfigError

        if self.cluster is not None and settings.get("last") is not None:
            raise ConfigError("--from does not go with --cluster; leave out one of them")
        prepared = self._prepare(graph, settings)
        if self.cluster is None:
            return prepared
        from graphsys.distributed.cluster import Cluster
        from graphsys.distributed.run import ClusterRun

        cluster = Cluster.parse(self.cluster)
        if settings.get("memory") is not None:
            raise ConfigError("memory does not go with --cluster; leave out one of them")
        return ClusterRun.of(prepared, self.name, self.parameters, cluster)

    def _prepare(
        self, graph: "GraphReader", settings: dict[str, Any]
    ) -> "NativeRun | ProgramRun":
        from graphsys.core.errors import ConfigError
        from graphsys.engine.program_run import prepare_program

        if self.program is not None:
            if settings.get("last") is not None:
                raise ConfigError(
                    "--from goes with listed algorithms, not with a program of your own"
                )
            return prepare_program(self.program, graph, **settings)
        assert self.listed is not None  # one of the two
        return self.listed.prepare(
            graph, implementation=self.implementation, **self.parameters, **settings
        )


def print_explanation(
    work: "NativeRun | ProgramRun | ClusterRun", algorithm: str, *, as_json: bool
) -> None:
    """Print how an algorithm would be run and why."""
    if not as_json:
        sys.stdout.write(visible(work.explanation()) + "\n")
        return
    choice = work.choice
    print_json(
        {
            "algorithm": algorithm,
            "implementation": work.implementation,
            "mode": choice.mode,
            "peak_bytes": choice.needed,
            "budget_bytes": choice.budget,
            "needs": dict(choice.needs),
            "explanation": work.explanation().splitlines(),
        }
    )


def list_algorithms(*, as_json: bool) -> None:
    """Print the names of all algorithms, with what they compute and their parameters."""
    from graphsys.engine.algorithms import ALGORITHMS

    rows = []
    for name, entry in sorted(ALGORITHMS.items()):
        kinds = [kind for kind in ("native", "program") if getattr(entry, kind)]
        parameters = ", ".join(entry.parameters())
        tags = " ".join(entry.tags)
        needs = entry.example.needs
        rows.append((name, entry.summary, " ".join(kinds), parameters, tags, needs))
    columns = ("algorithm", "what", "implementations", "parameters", "tags", "needs")
    if as_json:
        print_json({"algorithms": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        print_table(columns, rows)


def print_run(done: "Result", algorithm: str, out: Path | None, *, as_json: bool) -> None:
    """Print how a run went; what it computed is elsewhere."""
    facts: dict[str, Any] = {
        "algorithm": algorithm,
        "supersteps": done.supersteps,
        "seconds": done.seconds,
        "compile_seconds": done.compile_seconds,
        "converged": done.converged,
        "output": None if out is None else str(out),
    }
    if done.result is not None:
        facts["result"] = done.result
    figures = done.figures()
    if as_json:  # a contract: of what a cluster tells besides, the workers alone
        print_json(facts | {name: figures[name] for name in figures if name == "workers"})
    else:
        facts |= figures
        shown = {n.replace("_", " "): v for n, v in facts.items() if v is not None}
        print_facts(shown)
