"""``graphsys doctor``: what this machine has."""

from typing import Any

from graphsys.cli.console import print_facts, print_json
from graphsys.cli.options import JsonOption, examples
from graphsys.core.memory import format_bytes

EPILOG = examples("graphsys doctor", "graphsys doctor --json > machine.json")


def doctor(json: JsonOption = False) -> None:
    """Show what this machine has: CPU, memory, disk, GPU, optional packages."""
    from graphsys.core.machine import describe_machine

    machine = describe_machine()
    if json:
        print_json(machine)
    else:
        print_facts(_for_people(machine))


def _for_people(machine: dict[str, Any]) -> dict[str, Any]:
    cpu, memory, disk = machine["cpu"], machine["memory"], machine["disk"]
    gpu, counters = machine["gpu"], machine["counters"]
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
