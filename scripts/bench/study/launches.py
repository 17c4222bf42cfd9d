"""Finding A: launches, work per launch, copies."""

from bench.study.finding import FEW, GPU, MOST, Finding, judge
from bench.study.statistics import Rows, is_control, medians, superiority

STYLE = "host-driven"


def launches(rows: Rows) -> Finding:
    """Return the finding about kernel invocations."""
    graph, control = medians(rows, "kernel_invocations")
    more = superiority(rows, "kernel_invocations")
    return Finding(
        subject="A. Launches",
        paper="Kernel invocations nearly an order of magnitude higher than non-graph",
        statistic="Ratio of medians at least 5, and more launches in 75 % of pairs",
        here=f"{graph:.3g} against {control:.3g}: {graph / control:.1f} times; more in "
        f"{more:.0%} of pairs",
        verdict=judge(
            graph >= 5 * control and more >= MOST,
            "fused supersteps need one launch for many (`graphsys/engine/cuda/README.md`)",
        ),
    )


def work_per_launch(rows: Rows) -> Finding:
    """Return the finding about the computation of an invocation."""
    name = f"{GPU} work_per_invocation"
    graph, control = medians(rows, name)
    more = superiority(rows, name)
    return Finding(
        subject="A. Work per launch",
        paper="Less computation per invocation",
        statistic="Entries of a graph's launch against operands of a control's: less in "
        "75 % of pairs",
        here=f"{graph:,.0f} against {control:,.0f} (medians); less in {1 - more:.0%} of "
        "pairs",
        verdict=judge(more <= FEW),
    )


def with_copies(rows: Rows) -> Rows:
    """Return runs with their copies: predicted for graphs, counted for controls."""
    from graphsys.analysis.model.devices import GPUS
    from graphsys.analysis.model.transfers import LINKS, copies_seconds

    found = []
    for work, figures in rows:
        told = {
            name: figures.get(f"{GPU} predicted_transfer_{name}.{STYLE}")
            for name in ("count", "bytes", "seconds")
        }
        if is_control(work):
            count, size = figures.get("transfer_count"), figures.get("transfer_bytes")
            told |= {"count": count, "bytes": size}
            if count and size:
                link = LINKS[GPUS[GPU].name]
                told["seconds"] = copies_seconds(int(count), int(size), link)
        known = {f"copies {name}": it for name, it in told.items() if it}
        if len(known) == len(told):
            known["copies each"] = known["copies bytes"] / known["copies count"]
            found.append((work, known))
    return found


def copies(rows: Rows) -> Finding:
    """Return the finding about transfers."""
    moved = with_copies(rows)
    more, longer, larger = (
        superiority(moved, f"copies {name}") for name in ("count", "seconds", "each")
    )
    count, regular = medians(moved, "copies count")
    each, size = medians(moved, "copies each")
    return Finding(
        subject="A. Transfers",
        paper="The CPU interacts over PCI more often, in total longer; each transfer is "
        "smaller",
        statistic="Copies of the host-driven style, predicted from the supersteps, against "
        "the controls' own, counted: more, longer (by the link's model) and smaller, each "
        "in 75 % of pairs",
        here=f"{count:.3g} copies against {regular:.3g}, {each:,.0f} bytes each against "
        f"{size:,.0f} (medians); more in {more:.0%} of pairs, longer in {longer:.0%}, "
        f"smaller in {1 - larger:.0%}",
        verdict=judge(
            more >= MOST and longer >= MOST and larger <= FEW,
            "a model of an H100's link; seconds are open until a GPU",
        ),
    )
