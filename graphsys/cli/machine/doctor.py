"""``graphsys doctor``: what this machine has."""

from typing import Any

import typer

from graphsys.cli.console import print_facts, print_json
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import ClusterOption, JsonOption, examples
from graphsys.cli.progress import open_progress
from graphsys.core.memory import format_bytes

EPILOG = examples(
    "graphsys doctor",
    "graphsys doctor --json > machine.json",
    "graphsys doctor --warm-up",
    "graphsys doctor --cluster local:2",
)


@described
def doctor(
    warm_up: bool = False,
    cluster: ClusterOption = None,
    json: JsonOption = False,
) -> None:
    """Show what this machine has: CPU, memory, disk, GPU, optional packages.

    Options:
        --warm-up: Compile what common commands and every listed algorithm need, so that
            none of them has to: some minutes, once per version. What fails is reported.
    """
    from graphsys.core.machine import describe_machine

    if cluster is not None:
        _tell_cluster(cluster, as_json=json)
        return
    compiled = None
    if warm_up:
        from graphsys.cli.machine.warm_up import warm_up as compile_common_kernels

        compiled = compile_common_kernels(open_progress())
    machine = describe_machine()
    if json:
        print_json(machine | ({"warm_up": compiled} if compiled else {}))
        return
    facts = _for_people(machine)
    if compiled:
        facts["warmed up"] = (
            f"{compiled['commands']} commands in {compiled['seconds']:.0f} s"
        )
        for failure in compiled["failed"]:
            facts[f"not warmed up: {failure['command']}"] = failure["reason"]
    print_facts(facts)


def _tell_cluster(where: str, *, as_json: bool) -> None:
    """Tell what every node of a cluster has; exit with 1 where versions differ."""
    from graphsys.distributed.cluster import Cluster, describe_cluster

    found = describe_cluster(Cluster.parse(where))
    problems = [problem for node in found["nodes"] for problem in node["problems"]]
    if as_json:
        print_json(found)
    else:
        facts: dict[str, Any] = {"cluster": found["address"], "workers": found["workers"]}
        for node in found["nodes"]:
            facts[node["host"]] = (
                f"{node['cores']} cores, {format_bytes(node['memory_free_bytes'])} free, "
                f"graphsys {node['graphsys']}, Ray {node['ray']}, Python {node['python']}"
            )
        if problems:
            facts["problems"] = "; ".join(problems)
        print_facts(facts)
    if problems:
        raise typer.Exit(1)


def _for_people(machine: dict[str, Any]) -> dict[str, Any]:
    cpu, memory, disk = machine["cpu"], machine["memory"], machine["disk"]
    gpu, counters = machine["gpu"], machine["counters"]
    compiler = machine["cuda_compiler"]
    devices = ", ".join(
        f"{device['name']} ({format_bytes(device['memory_bytes'] or 0)}, driver "
        f"{device['driver']})"
        for device in gpu["devices"]
    )
    allowed = {True: "allowed", False: "not allowed", None: "unknown"}[counters["allowed"]]
    facts = {
        "CPU": f"{cpu['model']}, {cpu['usable_cores']} of {cpu['cores']} cores usable",
        "memory": f"{format_bytes(memory['available_bytes'])} free of "
        f"{format_bytes(memory['total_bytes'])}",
        "disk": f"{format_bytes(disk['free_bytes'])} free of "
        f"{format_bytes(disk['total_bytes'])} at {disk['folder']}",
        "GPU": devices or f"none ({gpu['reason']})",
        "CUDA compiler": compiler["path"] or f"none ({compiler['reason']})",
        "GPU counters": f"{allowed} ({counters['reason']})",
        "system": f"{machine['system']}, Python {machine['python']}",
        "graphsys": machine["graphsys"],
        "numba cache": machine["numba_cache"],
        "torch threads": machine["torch_threads"] or "torch cannot be loaded",
    }
    for name, package in machine["packages"].items():
        extra = package["extra"]
        how = f"pip install 'graphsys[{extra}]'" if extra else f"pip install {name}"
        facts[name] = package["version"] or f"not installed; {how}"
    return facts
