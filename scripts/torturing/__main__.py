"""Attack for some time, go on where an earlier run ended, and sum up."""

import argparse
import gc
import importlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.load import LoadMeter
from bench.output import keep_record, refuse_dirty_tree, stamp

from torturing.judge import FAULTS, Verdict
from torturing.world import World, quiet_environment

ATTACKS: Final = ("kills", "damage", "names", "archives", "disk", "limits")
OF_SCENES: Final = ("kills", "cluster", "billion")
"""Attacks one of whose scenes may be chosen. The last two take minutes a case and make
their own graphs: they are done only when asked for."""
_SHARES: Final = {"kills": 0.22, "damage": 0.62}
_SHARE: Final = 0.04  # of each of the others
_SLICE_S: Final = 30.0
_TOLD: Final = 5  # faults of one case that are told in full


def main() -> int:
    """Attack, and return 1 if something was found, now or before."""
    options = parse()
    state = read_state(options.state, options.seed)
    with tempfile.TemporaryDirectory(prefix="torture-", dir=options.folder) as name:
        quiet_environment(Path(name))
        world = World(Path(name).resolve() / "world")
        (Path(name) / "here").mkdir()
        os.chdir(Path(name) / "here")  # what is named without a folder goes there
        began = time.monotonic()
        if set(options.only) & set(ATTACKS):
            world.build(has_answers=not options.scene)
            gc.collect()  # forks close their files, and must find no reader to release
        print(f"the world is built in {time.monotonic() - began:.0f} s", file=sys.stderr)
        if options.case:
            attack, _, number = options.case.partition(":")
            verdict = attempt(world, attack, options, int(number), is_told=True)
            return int(bool(verdict.faults))
        row = stamp(command_of(sys.argv[1:])) | {"attacks": {}}
        state["rows"].append(row)
        with LoadMeter() as load:
            attack_for(world, state, row, options)
        row["load_average"] = [round(it, 2) for it in load.load_average]
        row["other_cpu_share"] = load.other_cpu_share
    keep_state(options.state, state)
    totals = summed(state)
    print(json.dumps(totals, indent=1))
    if options.save:
        facts = {"seed": state["seed"], **totals, "faults": state["faults"]}
        print(keep_record("torture", state["rows"], **facts), file=sys.stderr)
    return int(bool(state["faults"]))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long (60)")
    parser.add_argument("--cases", type=int, help="so many of each attack, instead")
    parser.add_argument(
        "--scene", action="append", default=[], help="of kills; repeatable; all"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the cases (0)")
    parser.add_argument(
        "--only",
        action="append",
        choices=(*ATTACKS, *OF_SCENES[1:]),
        help=f"repeatable; {', '.join(ATTACKS)}",
    )
    parser.add_argument("--scale", type=int, default=20, help="of billion's graph (20)")
    parser.add_argument("--memory", default="600MB", help="of billion's commands (600MB)")
    parser.add_argument(
        "--state",
        type=Path,
        required="--case" not in sys.argv,
        help="a file, outside the checkout, that a later run goes on from",
    )
    parser.add_argument(
        "--folder", type=Path, help="where the world lies; a temporary folder"
    )
    parser.add_argument("--case", metavar="ATTACK:N", help="try one case and tell about it")
    parser.add_argument(
        "--save", action="store_true", help="write a file into bench/results"
    )
    options = parser.parse_args()
    scenes = {attack: module_of(attack).scene_names() for attack in OF_SCENES}
    known = [name for names in scenes.values() for name in names]
    for name in options.scene:
        if name not in known:
            parser.error(f"--scene: there is no {name!r}, but {', '.join(known)}")
    chosen = [it for it, names in scenes.items() if {*names} & {*options.scene}]
    options.only = options.only or chosen or list(ATTACKS)
    if options.case:
        options.only = [options.case.partition(":")[0]]
    if options.state:
        options.state = options.state.resolve()
    if options.save:
        refuse_dirty_tree()
    return options


def read_state(path: Path | None, seed: int) -> dict[str, Any]:
    """Return what earlier runs of the same seed found."""
    if path is not None and path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        if found["seed"] != seed:
            raise SystemExit(f"{path} is of seed {found['seed']}; choose another --state")
        return found
    return {"seed": seed, "next": {}, "faults": [], "rows": []}


def attack_for(
    world: World, state: dict[str, Any], row: dict[str, Any], options: argparse.Namespace
) -> None:
    """Take turns between attacks, so long that each has its share of the time."""
    chosen = options.only
    end = time.monotonic() + 60 * options.minutes
    spent = dict.fromkeys(chosen, 0.0)
    first = {name: state["next"].get(name, 0) for name in chosen}
    most = sys.maxsize if options.cases is None else options.cases
    while time.monotonic() < end:
        waiting = [it for it in chosen if state["next"].get(it, 0) - first[it] < most]
        if not waiting:
            return
        attack = min(waiting, key=lambda name: spent[name] / _SHARES.get(name, _SHARE))
        began = time.monotonic()
        until = min(end, began + (0 if options.cases else _SLICE_S))
        while True:
            step(world, state, row, attack, options)
            if time.monotonic() >= until:
                break
        spent[attack] += time.monotonic() - began
        keep_state(options.state, state)


def step(
    world: World,
    state: dict[str, Any],
    row: dict[str, Any],
    attack: str,
    options: argparse.Namespace,
) -> None:
    """Try the next case of an attack, and add what it found."""
    figures = row["attacks"].setdefault(attack, {"seconds": 0.0})
    began, number = time.monotonic(), state["next"].get(attack, 0)
    verdict = attempt(world, attack, options, number)
    state["next"][attack] = number + 1
    figures["seconds"] = round(figures["seconds"] + time.monotonic() - began, 2)
    for name, count in verdict.counts.items():
        figures[name] = figures.get(name, 0) + count
    for kind, what in verdict.faults[:_TOLD]:
        found = {"case": f"{attack}:{number}", "kind": kind, "what": what}
        state["faults"].append(found | {"commit": row["commit"]})
        print(f"{attack}:{number}: {kind}: {what}", file=sys.stderr, flush=True)


def attempt(
    world: World,
    attack: str,
    options: argparse.Namespace,
    number: int,
    *,
    is_told: bool = False,
) -> Verdict:
    """Try one case, from a whole world."""
    if attack in ATTACKS:
        world.restore()
    verdict = Verdict()
    draw = random.Random(f"{options.seed}/{attack}/{number}")
    module = module_of(attack)
    how: dict[str, Any] = {}
    if attack in OF_SCENES:
        how["only"] = [it for it in module.scene_names() if it in options.scene]
    if attack == "billion":
        how |= {"scale": options.scale, "memory": options.memory}
    what = module.case(world, draw, verdict, **how)
    if is_told:
        print(what, verdict.counts, *verdict.faults, sep="\n")
    return verdict


def module_of(attack: str) -> Any:
    """Return the module of an attack."""
    return importlib.import_module(f"torturing.{attack}")


def command_of(arguments: list[str]) -> str:
    """Return the command as it was typed, without this machine's paths."""
    words = list(arguments)
    for place, word in enumerate(words):
        if place and words[place - 1] in ("--state", "--folder"):
            words[place] = "PATH"
        elif word.startswith(("--state=", "--folder=")):
            words[place] = word.partition("=")[0] + "=PATH"
    return " ".join(["scripts/torture", *words])


def keep_state(path: Path, state: dict[str, Any]) -> None:
    """Write the state, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(state, indent=1) + "\n")
    os.replace(fresh, path)


def summed(state: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of all runs together, in all and by attack."""
    attacks: dict[str, dict[str, float]] = {}
    for row in state["rows"]:
        for attack, figures in row["attacks"].items():
            total = attacks.setdefault(attack, dict.fromkeys(FAULTS, 0))
            for name, count in figures.items():
                total[name] = round(total.get(name, 0) + count, 2)
    told = ("seconds", "cases", "kills", "states", "commands", *FAULTS)
    totals = {name: sum(it.get(name, 0) for it in attacks.values()) for name in told}
    return {"totals": totals, "attacks": attacks}


if __name__ == "__main__":
    sys.exit(main())
