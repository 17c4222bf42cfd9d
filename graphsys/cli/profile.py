"""``graphsys profile``: run a command and explain where its time went."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphsys.cli.console import print_json, print_note, print_table
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.help_pages.verbs import Verb
from graphsys.cli.options import OverwriteOption, examples
from graphsys.core.errors import ConfigError, unknown_name

EPILOG = examples(
    "graphsys profile -o report.html -- run bfs web -o hops.parquet --param source=42",
    "graphsys profile -o report.html --level L0 -- train embedding shop -o run --preset "
    "demo-complex",
    "graphsys profile -o trace.html --trace kineto.json.gz",
    "graphsys profile --schedulers -o report.html -- run pagerank web -o ranks.parquet",
    "graphsys profile --compile sm_90 pagerank",
    "graphsys profile --compare before.json after.json -o changes.html",
)

_NOT_PROFILED = ("profile",)
_WITHOUT_COMMAND = ("--compare", "--compile", "--trace", "--ncu", "--help", "-h")

Perform = Callable[[Sequence[str]], tuple[int, str | None]]
"""Runs a command line: its exit code, and the error message where there is one."""


@described
def profile(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="After --, a graphsys command with its options; with --compare, two "
            "reports' .json.",
            show_default=False,
        ),
    ] = None,
    out: Path | None = None,
    level: str = "L1",
    gpu_model: str = "h100",
    schedulers: bool = False,
    compare: bool = False,
    trace: Path | None = None,
    ncu: Path | None = None,
    compile_: str | None = None,
    chrome_trace: Path | None = None,
    overwrite: OverwriteOption = False,
    json: bool = False,
) -> int:
    """Run a graphsys command and write a page that says where its time went.

    Output:
        -o, --out FILE: The page to write, .html; the same as .json is written beside it.
        --chrome-trace FILE: Write the command's spans there too, for Perfetto (.json or
            .json.gz).
        --json: With --compare and --compile, print one JSON object and nothing else.

    Run:
        --level NAME: L0: the host's counters; L1: the SIMT model of a GPU besides; L3:
            clocks inside CUDA kernels besides; L4: start ncu for its counters of one pass,
            L4-stalls: for caches and stall reasons besides.
        --gpu-model NAME: The GPU that the model stands for: h100, h200, a100 or m2050.
        --schedulers: Simulate caches and warp schedulers of some SMs too: hit rates by
            array; instructions per cycle of round-robin, greedy-then-oldest and two-level.
        --compare: Say what changed between two reports, and run nothing.
        --trace FILE: Explain a GPU's trace (Kineto or Chrome, .json or .json.gz) instead of
            a command; a report's .json as COMMAND tells which kernels are missing in it.
        --ncu FILE: Explain Nsight Compute's counters (its --csv, --page raw or details)
            instead of a command.
        --compile TARGET: Compile COMMAND, an algorithm or file.py:Class, for sm_90 without
            a GPU; say what registers and instructions its kernels take.
    """
    from graphsys.analysis.profile import counts_by_ncu

    words = command or []
    if json and not compare and compile_ is None:
        raise ConfigError(
            "--json belongs to --compare and --compile here; the profiled command takes "
            "its own after --, and the report's JSON is written beside the page"
        )
    if compare:
        if len(words) != 2:
            raise ConfigError(f"--compare takes two reports' .json, got {len(words)} names")
        _compare(Path(words[0]), Path(words[1]), out, as_json=json, overwrite=overwrite)
        return 0
    if compile_ is not None:
        if len(words) != 1 or out is not None or trace is not None:
            raise ConfigError(
                "--compile takes one algorithm or file.py:Class, nothing else"
            )
        _compile(words[0], compile_, as_json=json)
        return 0
    if trace is None and ncu is None:
        _check_words(words, _verbs_of(context))
    elif len(words) > (ncu is None) or chrome_trace is not None or (trace and ncu):
        raise ConfigError(
            "--trace takes one report's .json at most, --ncu nothing, and neither a command"
        )
    if out is None:
        raise ConfigError("name the page to write with --out FILE.html")
    if trace is not None or ncu is not None:
        own = [Path(word) for word in words]
        _explain(trace, ncu, own, out, overwrite=overwrite)
        return 0
    if chrome_trace is not None:
        _check_trace(chrome_trace, overwrite=overwrite)
    settings = {
        "level": level,
        "gpu_model": gpu_model,
        "overwrite": overwrite,
        "schedulers": schedulers,
    }
    from graphsys.analysis.files import check_outputs

    check_outputs(words, out, chrome_trace)
    if counts_by_ncu(level):
        return _count(words, out, chrome_trace, **settings)
    return _run(context.obj, words, out, chrome_trace, **settings)


class ProfileVerb(Verb):
    """A verb that asks for ``--`` before the command it is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Say so, before the command's options are taken for those of profile."""
        verbs = _verbs_of(ctx)
        place = next((k for k, word in enumerate(args) if word in verbs), None)
        if place is not None and not {"--", *_WITHOUT_COMMAND} & set(args):
            raise ConfigError(
                "give the command after --: graphsys profile "
                f"{shlex.join([*args[:place], '--', *args[place:]])}"
            )
        return super().parse_args(ctx, args)


def _verbs_of(context: Any) -> set[str]:
    return set(getattr(context.find_root().command, "commands", {}))


def _check_words(words: list[str], verbs: set[str]) -> None:
    """Refuse what is no command to profile."""
    if not words:
        raise ConfigError(
            "give a command after --, such as: -- run pagerank web -o out.csv"
        )
    if words[0] in _NOT_PROFILED or words[0].startswith("-"):
        raise ConfigError(f"cannot profile {words[0]!r}; give a graphsys command after --")
    if verbs and words[0] not in verbs:
        raise unknown_name("command to profile", words[0], verbs - set(_NOT_PROFILED))


def _run(
    perform: Perform,
    words: list[str],
    out: Path,
    chrome_trace: Path | None,
    **settings: Any,
) -> int:
    """Run a command inside a profile; return 1 if it failed."""
    from graphsys.analysis.page.text import memory_text
    from graphsys.analysis.profile import profile as open_profile
    from graphsys.analysis.traces.clocks import NO_CLOCKS

    command = shlex.join(["graphsys", *words])
    recorded = open_profile(out, command=command, **settings)
    with recorded:
        code, message = perform(words)
        if code == 130:
            recorded.drop()
        elif code:
            recorded.fail(message or f"exit code {code}")
    if code == 130:
        return code
    print_note(f"profile: {recorded.report['verdict']['summary']}")
    if then := recorded.report["verdict"]["next"]:
        print_note(f"profile: next: {then['command']}")
    if memory := memory_text(recorded.report):
        print_note(f"profile: memory {memory}")
    if settings["level"] == "L3" and recorded.report["clocks"] is None:
        print_note(f"profile: no clocks: {NO_CLOCKS}")
    print_note(f"profile: wrote {out} and {out.with_suffix('.json').name}")
    if settings["schedulers"]:
        print_note(f"profile: {_schedulers_text(recorded.report)}")
    if chrome_trace is not None:
        recorded.write_trace(chrome_trace)
        print_note(f"profile: wrote {chrome_trace}")
    return 1 if code else 0


def _schedulers_text(report: dict[str, Any]) -> str:
    """Return what the simulation of the warp schedulers says, in a line."""
    from graphsys.analysis.model.schedulers import POLICIES

    metrics = {metric["name"]: metric for metric in report["metrics"]}
    found = {policy: metrics[f"scheduler_ipc.{policy}"] for policy in POLICIES}
    if any(metric["value"] is None for metric in found.values()):
        return f"no schedulers: {metrics['scheduler_spread']['reason']}"
    told = ", ".join(f"{policy} {metric['value']:.3f}" for policy, metric in found.items())
    spread = metrics["scheduler_spread"]["value"]
    rates = [metrics[f"l{level}_hit_rate"]["value"] for level in (1, 2)]
    hits = [
        f"{100 * rate:.0f} % of sectors in L{level}"
        for level, rate in enumerate(rates, 1)
        if rate is not None
    ]
    first = f"simulated instructions per cycle of a warp scheduler: {told}"
    return "; ".join([f"{first} ({spread:.1%} apart)", *hits])


def _count(words: list[str], out: Path, chrome_trace: Path | None, **settings: Any) -> int:
    """Run a command inside a profile inside ``ncu``; return 1 if it failed."""
    from graphsys.analysis.files import check_target, read_report
    from graphsys.analysis.model.devices import gpu_of
    from graphsys.analysis.ncu_run import counters_note, run_counted

    gpu_of(settings["gpu_model"])
    check_target(out, overwrite=settings["overwrite"])
    options = ["--level", settings["level"], "--gpu-model", settings["gpu_model"]]
    options += [f"--{it}" for it in ("overwrite", "schedulers") if settings[it]]
    options += ["--chrome-trace", str(chrome_trace)] if chrome_trace is not None else []
    code = run_counted(words, out, options, settings["level"])
    if code in (0, 1):
        report = read_report(out.with_suffix(".json"))
        print_note(f"profile: {counters_note(report)}")
    return code


def _compile(program: str, target: str, *, as_json: bool) -> None:
    """Print what the compiler says of a program's kernels."""
    from graphsys.analysis.model.compiled import compile_facts

    facts = compile_facts(program, target)
    if as_json:
        print_json(facts)
        return
    columns = (
        "kernel",
        "registers",
        "shared B",
        "stack B",
        "spilled B",
        "CTAs per SM",
        "occupancy",
        "limit",
        "instructions",
    )
    rows = []
    for row in facts["kernels"]:
        told = _mix_text(row["instructions"] or {})
        rows.append(
            (
                row["name"],
                row["registers"],
                row["shared_bytes"],
                row["stack_bytes"],
                row["spill_bytes"],
                row["ctas_per_sm"],
                f"{100 * row['occupancy']:.0f} %",
                row["occupancy_limit"],
                told or "not counted: nvdisasm is not installed",
            )
        )
    print_table(columns, rows)
    lines = [
        (
            row["name"],
            Path(line["line"]).name if line["line"] else "(the engine's loop)",
            line["source"],
            _mix_text(line["instructions"]),
        )
        for row in facts["kernels"]
        for line in row["lines"] or ()
    ]
    if lines:
        print_table(("kernel", "line", "source", "instructions"), lines)


def _mix_text(mix: dict[str, int]) -> str:
    """Return instructions by kind as text, the most frequent first."""
    kinds = sorted(mix.items(), key=lambda item: -item[1])
    return ", ".join(f"{kind} {count}" for kind, count in kinds)


def _check_trace(path: Path, *, overwrite: bool) -> None:
    """Refuse a trace that could not be written, before anything runs."""
    from graphsys.storage.output_file import require_writable

    if not path.name.endswith((".json", ".json.gz")):
        raise ConfigError(f"cannot write {path.name!r}: a trace ends in .json or .json.gz")
    require_writable(path, overwrite=overwrite)
    if not path.parent.is_dir():
        raise ConfigError(f"{path.parent} is no folder; make it first")


def _explain(
    trace: Path | None, ncu: Path | None, own: list[Path], out: Path, *, overwrite: bool
) -> None:
    """Write the report of a trace, or of counters."""
    from graphsys.analysis.files import check_target, read_report, write_report
    from graphsys.analysis.ncu_report import report_of_ncu
    from graphsys.analysis.trace_report import report_of_trace

    check_target(out, overwrite=overwrite)
    if trace is not None:
        report = report_of_trace(trace, read_report(own[0]) if own else None)
    else:
        assert ncu is not None  # one of the two
        report = report_of_ncu(ncu)
    write_report(report, out)
    print_note(f"profile: {report['verdict']['summary']}")
    print_note(f"profile: wrote {out} and {out.with_suffix('.json').name}")


def _compare(
    before: Path, after: Path, out: Path | None, *, as_json: bool, overwrite: bool
) -> None:
    from graphsys.analysis.compare import compare_reports
    from graphsys.analysis.files import (
        check_target,
        read_report,
        unaltered,
        write_comparison,
    )
    from graphsys.analysis.page.text import number_text

    if out is not None:
        check_target(out, overwrite=overwrite)
        if out.with_suffix(".json").resolve() in (before.resolve(), after.resolve()):
            raise ConfigError(
                f"{out} would put its JSON in place of a report that is compared; choose "
                "another name"
            )
        write_comparison(before, after, out)
        print_note(f"profile: wrote {out} and {out.with_suffix('.json').name}")
    with unaltered(before, after):
        found = compare_reports(read_report(before), read_report(after))
    if as_json:
        print_json(found)
        return
    if found["unlike"]:
        print_note(f"warning: {found['unlike']}")
    for name, (old, new) in found["configuration"].items():
        print_note(f"differs: {name}: {old} -> {new}")
    rows = [
        (
            change["name"],
            number_text(change["before"]) or "-",
            number_text(change["after"]) or "-",
            "" if change["ratio"] is None else f"{change['ratio']:.3g}",
            change["unit"],
        )
        for change in found["changes"]
    ]
    print_table(("metric", before.name, after.name, "ratio", "unit"), rows)
