"""A lock-step emulator of warps: lanes run under a mask, nothing is in closed form."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

WARP = 32


@dataclass
class Lane:
    """One lane: the task it belongs to, and the entries it still has to visit."""

    task: object
    entries: list[int] = field(default_factory=list)


@dataclass
class Tally:
    """What the emulated warps did."""

    steps: int = 0
    active: int = 0
    intra: int = 0
    inter: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * (WARP + 1))
    ctas: list[list[int]] = field(default_factory=list)
    requests: list[list[tuple[object, int]]] = field(default_factory=list)

    def run_warp(self, lanes: list[Lane]) -> int:
        """Run a warp until every lane is done; return its steps."""
        lanes = lanes + [Lane(None) for _ in range(WARP - len(lanes))]
        places = [0] * WARP
        steps = 0
        while True:
            mask = [p < len(lane.entries) for p, lane in zip(places, lanes, strict=True)]
            if not any(mask):
                return steps
            steps += 1
            running = {lane.task for lane, on in zip(lanes, mask, strict=True) if on}
            request = []
            for k, lane in enumerate(lanes):
                if mask[k]:
                    request.append((lane.task, lane.entries[places[k]]))
                    places[k] += 1
                elif lane.task is not None and lane.task in running:
                    self.intra += 1
                else:
                    self.inter += 1
            self.steps += 1
            self.active += len(request)
            self.histogram[len(request)] += 1
            self.requests.append(request)

    def run_grid(self, warps: list[list[Lane]], warps_per_cta: int) -> None:
        """Run warps, some to a CTA; note the steps of each CTA's warps."""
        for first in range(0, len(warps), warps_per_cta):
            cta = [self.run_warp(warp) for warp in warps[first : first + warps_per_cta]]
            self.ctas.append(cta)


def rows_of(lengths: list[int], starts: list[int]) -> list[tuple[int, range]]:
    return [
        (row, range(start, start + length))
        for row, (length, start) in enumerate(zip(lengths, starts, strict=True))
    ]


def grouped(rows: list[tuple[int, range]], lanes: int) -> list[list[Lane]]:
    """Rows in their order, ``lanes`` lanes each, in warps."""
    made = [
        Lane(row, list(span[lane::lanes])) for row, span in rows for lane in range(lanes)
    ]
    return [made[first : first + WARP] for first in range(0, len(made), WARP)]


def emulate(mapping: str, lengths: list[int], starts: list[int], threads: int) -> Tally:
    """Run all rows by a mapping."""
    tally, rows, in_cta = Tally(), rows_of(lengths, starts), threads // WARP
    if mapping in ("thread", "sub-warp", "warp"):
        lanes = {"thread": 1, "sub-warp": 8, "warp": WARP}[mapping]
        tally.run_grid(grouped(rows, lanes), in_cta)
    elif mapping == "block":
        for row in rows:
            tally.run_grid(grouped([row], threads), in_cta)
    elif mapping == "twc":
        small = [row for row in rows if len(row[1]) < WARP]
        large = [row for row in rows if len(row[1]) >= max(threads, WARP)]
        medium = [row for row in rows if row not in small and row not in large]
        tally.run_grid(grouped(small, 1), in_cta)
        tally.run_grid(grouped(medium, WARP), in_cta)
        for row in large:
            tally.run_grid(grouped([row], threads), in_cta)
    elif mapping == "edge":
        edges = [(row, entry) for row, span in rows for entry in span]
        # a task per edge: lanes without an edge idle for want of tasks
        lanes_of = [Lane(k, [entry]) for k, (_, entry) in enumerate(edges)]
        warps = [lanes_of[k : k + WARP] for k in range(0, len(lanes_of), WARP)]
        tally.run_grid(warps, in_cta)
    elif mapping == "merge-path":
        items = [None for _ in lengths] + [entry for _, span in rows for entry in span]
        shares = [items[k : k + 8] for k in range(0, len(items), 8)]
        lanes_of = [Lane(k, list(range(len(share)))) for k, share in enumerate(shares)]
        warps = [lanes_of[k : k + WARP] for k in range(0, len(lanes_of), WARP)]
        tally.run_grid(warps, in_cta)
    else:
        raise AssertionError(mapping)
    return tally


def edge_rows(lengths: list[int]) -> list[int]:
    """The row of every entry of the joined rows."""
    return [row for row, length in enumerate(lengths) for _ in range(length)]


def schedule(times: list[float], num_sms: int, resident: int) -> dict[str, list[float]]:
    """List scheduling, by looking at every slot for every CTA."""
    slots = [[0.0, place, sm] for place in range(resident) for sm in range(num_sms)]
    busy, ctas = [0.0] * num_sms, [0] * num_sms
    for time in times:
        slot = min(slots)
        slot[0] += time
        busy[int(slot[2])] += time
        ctas[int(slot[2])] += 1
    return {
        "busy": busy,
        "ctas": [float(n) for n in ctas],
        "end": [max(slot[0] for slot in slots)],
    }


def most_alike(values: Sequence[object]) -> int:
    return max(Counter(values).values())
