"""Charts as inline SVG: small functions from figures to text, colored by CSS classes."""

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup, escape

from graphsys.core.memory import format_bytes

SIDES = ("before", "after")
"""Colors of the two runs of a comparison."""
CURVE_LEFT = 72
"""Pixels that the labels of a curve have on its left."""
_CARD = 340
"""Width of the viewBox of a card's chart: about what it has on a screen."""
_MOST_BAR = 0.075
"""Share of a wide chart that a bar has at most: of few, the rest stays free."""
_GAP = 0.1
"""Share of a bar's width between it and the next."""
_MOST_SIZES = 4
"""Sizes that a phone's axis has room for."""
_MOST_POWERS = 4
"""Powers of ten along a phone's axis; of more, every second has no text there."""
_MOST_DOTS = 100
"""Points of a curve that can be pointed at; of more, the line is drawn alone."""


def _svg(height: float, label: str, parts: Sequence[str], width: int = _CARD) -> Markup:
    return Markup(
        f'<svg class="chart" viewBox="0 0 {width} {height:g}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


class _Plot:
    """A chart as wide as its place, a phone's too: text and lines keep their size.

    What lies across is a share of the width, what lies up is in pixels from the top.

    Args:
        left: Pixels on the left, for labels.
        base: Where the horizontal axis is.
    """

    def __init__(self, left: int, base: float) -> None:
        self._left, self._base = left, base
        self._parts: list[str] = []

    def bar(self, at: float, width: float, y: float, up: float, kind: str, of: str) -> None:
        """Draw a bar from ``y`` downwards; ``of`` is what is said of it."""
        self._parts.append(
            f'<rect class="{kind}" x="{100 * at:.3f}%" y="{y:.2f}" '
            f'width="{100 * width:.3f}%" height="{max(up, 0):.2f}">'
            f"<title>{escape(of)}</title></rect>"
        )

    def mark(self, at: float, y: float, size: int, kind: str, of: str) -> None:
        """Draw a square around a point."""
        self._parts.append(
            f'<rect class="{kind}" x="{100 * at:.3f}%" y="{y:.2f}" width="{size}" '
            f'height="{size}" transform="translate({-size / 2:g} {-size / 2:g})">'
            f"<title>{escape(of)}</title></rect>"
        )

    def text(
        self, at: float, y: float, text: str, anchor: str = "start", kind: str = ""
    ) -> None:
        """Write a text; one of the kind ``more`` is left out on a phone."""
        told = f' class="{kind}"' if kind else ""
        self._parts.append(
            f'<text{told} x="{100 * at:.3f}%" y="{y:.1f}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )

    def label(self, y: float, text: str) -> None:
        """Write a text on the left of the chart."""
        self._parts.append(_text(-6, y, text, "end"))

    def name(self, at: float, y: float, name: str) -> None:
        """Write the name of a point, on the side where there is more room."""
        side, anchor = (9, "start") if at < 0.5 else (-9, "end")
        self._parts.append(
            f'<text class="name" x="{100 * at:.3f}%" y="{y + 4:.1f}" dx="{side}" '
            f'text-anchor="{anchor}">{escape(name)}</text>'
        )

    def tick(self, y: float, text: str) -> None:
        """Draw a line across, with its label."""
        self.across(y, "tick")
        self.label(y + 4, text)

    def across(self, y: float, kind: str) -> None:
        """Draw a line across."""
        self._parts.append(
            f'<line class="{kind}" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        )

    def upright(self, at: float, top: float, of: str) -> None:
        """Draw the line of a limit from ``top`` to the axis."""
        x = f"{100 * at:.3f}%"
        self._parts.append(
            f'<line class="limit-line" x1="{x}" x2="{x}" y1="{top:g}" '
            f'y2="{self._base:g}"><title>{escape(of)}</title></line>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        told = " ".join(f"{1000 * at:.1f},{y:.1f}" for at, y in points)
        self._parts.append(
            f'<svg viewBox="0 0 1000 {self._base:g}" preserveAspectRatio="none" '
            f'width="100%" height="{self._base:g}" overflow="visible">'
            f'<polyline class="{kind}" points="{told}" '
            'vector-effect="non-scaling-stroke"/></svg>'
        )

    def drawn(self, below: float, label: str) -> Markup:
        """Return the chart; ``below`` are pixels under its axis."""
        return Markup(
            f'<svg class="chart" style="height: {self._base + below:g}px; '
            f'padding-left: {self._left}px" role="img" '
            f'aria-label="{escape(label)}">{"".join(self._parts)}</svg>'
        )


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" '
        f'height="{max(height, 0):.2f}"><title>{escape(title)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def means_of_parts(
    values: Sequence[float | None], most_bars: int
) -> tuple[int, list[float | None]]:
    """Return the length of equal parts, one a bar of a chart, and their means."""
    size = max(-(-len(values) // most_bars), 1)
    means: list[float | None] = []
    for k in range(0, len(values), size):
        known = [it for it in values[k : k + size] if it is not None]
        means.append(sum(known) / len(known) if known else None)
    return size, means


def small_bars(
    values: Sequence[float | None],
    kind: str,
    what: str,
    names: Sequence[str] = (),
    *,
    most: float | None = None,
    line: float | None = None,
) -> Markup:
    """Draw bars beside each other without any text, which the page has below them.

    Args:
        values: Not negative; None leaves a gap.
        kind: Their color.
        what: Said of a bar behind its value.
        names: Said of a bar before its value; its number, if not given.
        most: Value of the upper edge; the largest, if not given.
        line: Value at which to draw a line.
    """
    top = most or max((it for it in values if it is not None), default=0.0) or 1.0
    width, height = 240.0, 48.0
    each = min(width / max(len(values), 1), 32.0)
    gap = min(2.0, each / 4)
    parts = [_rect(0, height - 0.75, width, 0.75, "base", what)]
    for k, value in enumerate(values):
        if value is None:
            continue
        up = max((height - 2) * value / top, 1.0 if value else 0.0)
        name = names[k] if names else str(k)
        title = f"{name}: {value:,.4g} {what}"
        parts.append(_rect(k * each, height - up, each - gap, up, kind, title))
    if line is not None and line <= top:
        y = height - (height - 2) * line / top
        parts.append(
            f'<line class="limit-line" x1="0" x2="{width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
    return Markup(
        f'<svg class="chart small" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'preserveAspectRatio="none" aria-label="{escape(what)}">{"".join(parts)}</svg>'
    )


def bandwidth(rates: Sequence[float | None], copied: float, axis: str, what: str) -> Markup:
    """Draw the useful bytes a second of steps below what the machine copies.

    Args:
        rates: Bytes a second of each step, or of equal parts of them; None is unknown.
        copied: What a copy reaches, bytes a second.
        axis: What is said of the horizontal axis.
        what: Said of a bar.

    Returns:
        Nothing where no rate is known.
    """
    known = [it for it in rates if it]
    if not known or copied <= 0:
        return Markup("")
    high = math.ceil(math.log10(max(*known, copied)) + 0.05)
    low = min(math.floor(math.log10(min(known))), high - 2)
    base, height = 190.0, 170.0
    plot = _Plot(84, base)

    def up(rate: float) -> float:
        return height * (math.log10(rate) - low) / (high - low)

    for power in range(low, high + 1):
        plot.tick(base - up(10.0**power), f"{_bytes_text(10.0**power)}/s")
    width = min(1 / len(rates), _MOST_BAR)
    for k, rate in enumerate(rates):
        if rate:
            title = f"{what} {k}: {_bytes_text(rate)}/s, {100 * rate / copied:.2g} %"
            high_y = base - up(rate)
            plot.bar(k * width, (1 - _GAP) * width, high_y, up(rate), "work", title)
    y = base - up(copied)
    plot.across(y, "limit-line")
    plot.text(1, y - 5, f"what this memory copies: {_bytes_text(copied)}/s", "end")
    plot.text(0, base + 18, axis)
    return plot.drawn(24, "useful bytes a second")


def _bytes_text(amount: float) -> str:
    """Write bytes in powers of ten, as the axes are."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if amount >= scale:
            return f"{amount / scale:.3g} {unit}"
    return f"{amount:.3g} B"


def lane_histogram(steps: Sequence[int], name: str) -> Markup:
    """Draw how many of a warp's steps have 1 to 32 active lanes, as shares.

    Args:
        steps: Steps by active lanes ``[33]``.
        name: Of the mapping, for readers of the page who do not see it.
    """
    total = sum(steps)
    if not total:
        return Markup('<p class="none-told">no row had an entry</p>')
    shares = [count / total for count in steps[1:]]
    most, left, base = max(shares), 44.0, 110.0
    width = (_CARD - left - 8) / 32
    parts = [
        _rect(
            left + k * width + 1,
            base - 92 * share / most,
            width - 2,
            92 * share / most,
            "work",
            f"{k + 1} lanes: {100 * share:.2f} % of the steps",
        )
        for k, share in enumerate(shares)
    ]
    parts += [
        _text(left - 4, 24, f"{100 * most:.0f} %", "end"),
        _text(left - 4, base, "0", "end"),
    ]
    parts += [
        _text(left + (k - 0.5) * width, base + 15, str(k), "middle")
        for k in (1, 8, 16, 24, 32)
    ]
    parts.append(_text(_CARD, base + 30, "active lanes of a warp's step", "end"))
    return _svg(base + 34, f"active lanes, {name}", parts, _CARD)


def sm_balance(work: Sequence[float], name: str) -> Markup:
    """Draw the work of every SM over the mean; the line is the mean.

    Args:
        work: Of every SM ``[M]``.
        name: Of the mapping.
    """
    mean = sum(work) / len(work) if work else 0.0
    if mean <= 0:
        return Markup('<p class="none-told">no SM had work</p>')
    most, left, base = max(work) / mean, 44.0, 92.0
    width = (_CARD - left) / len(work)
    parts = [
        _rect(
            left + k * width,
            base - 76 * amount / mean / most,
            max(width - 1, 0.5),
            76 * amount / mean / most,
            "work",
            f"SM {k}: {amount / mean:.3f} of the mean",
        )
        for k, amount in enumerate(work)
    ]
    line = base - 76 / most
    parts.append(
        f'<line class="limit-line" x1="{left}" x2="{_CARD}" y1="{line:.1f}" '
        f'y2="{line:.1f}"/>'
    )
    parts += [_text(left - 4, 24, f"{most:.2f}", "end"), _text(left - 4, base, "0", "end")]
    parts.append(_text(_CARD, base + 16, f"SM 0 to {len(work) - 1}, work / mean", "end"))
    return _svg(base + 20, f"work per SM, {name}", parts, _CARD)


def memory_over_time(
    points: Sequence[tuple[str, Mapping[str, int]]], seconds: tuple[float, float]
) -> Markup:
    """Draw the parts of the memory as stacked bars, one after the other.

    Args:
        points: What is said of a bar, and its parts in bytes, the lowest first.
        seconds: When the first and the last bar are.

    Returns:
        Nothing where there are no points.
    """
    most = max((sum(parts.values()) for _, parts in points), default=0)
    if not most:
        return Markup("")
    base, height = 190.0, 176.0
    plot = _Plot(84, base)
    width = min(1 / len(points), _MOST_BAR)
    for k, (title, sizes) in enumerate(points):
        y = base
        for part, (name, size) in enumerate(sizes.items()):
            up = height * size / most
            y -= up
            if size:
                text = f"{title}, {name}: {format_bytes(size)}"
                plot.bar(k * width, (1 - _GAP) * width, y, up, f"part{part}", text)
    plot.label(base - height + 10, format_bytes(most))
    plot.label(base, "0")
    first, last = (f"{it:.3g} s" for it in seconds)
    if len(points) * width < 0.5:  # the last one's would stand in the first one's way
        plot.text(0, base + 16, f"{first} to {last}")
    else:
        plot.text(0, base + 16, first)
        plot.text(len(points) * width, base + 16, last, "end")
    return plot.drawn(20, "memory over time")


def roofline(
    operators: Sequence[tuple[str, float, float]],
    bandwidth: float | None,
    gemm_rate: float | None,
) -> Markup:
    """Draw operators below the machine's roof, both axes in powers of ten.

    Args:
        operators: Name, FLOP per byte, and FLOP per second.
        bandwidth: What the machine copies, bytes/s.
        gemm_rate: What it multiplies, FLOP/s; None: the roof has no flat part.

    Returns:
        Nothing where there are no operators, or no rate was measured.
    """
    if not operators or not bandwidth:
        return Markup("")
    ridge = gemm_rate / bandwidth if gemm_rate else None
    xs = [x for _, x, _ in operators] + ([ridge] if ridge else [])
    low_x, high_x = (f(math.log10(x) for x in xs) for f in (min, max))
    low_x, high_x = math.floor(low_x - 0.2), math.ceil(high_x + 0.2)
    peak = gemm_rate or bandwidth * 10**high_x
    ys = [y for *_, y in operators] + [peak]
    low_y, high_y = (f(math.log10(y) for y in ys) for f in (min, max))
    low_y, high_y = math.floor(low_y), math.ceil(high_y + 0.1)
    base, height = 250.0, 230.0
    plot = _Plot(104, base)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(y) - low_y) / (high_y - low_y)
        return across, base - up * height

    roof = [(10.0**low_x, bandwidth * 10.0**low_x)]
    roof += [(ridge, peak)] if ridge else []
    roof.append((10.0**high_x, min(peak, bandwidth * 10.0**high_x)))
    plot.line([(x, min(y, base)) for x, y in (place(*at) for at in roof)], "roof")
    for power in range(low_y, high_y + 1):
        y = place(10.0**low_x, 10.0**power)[1]
        plot.label(y + 4, f"{10.0 ** (power - 9):g} GFLOP/s")
    most = _MOST_POWERS
    for power in range(low_x, high_x + 1):
        kind = "more" if high_x - low_x > most and (power - low_x) % 2 else ""
        x = place(10.0**power, 10.0**low_y)[0]
        anchor = "end" if power == high_x else "middle"
        plot.text(x, base + 16, f"{10.0**power:g}", anchor, kind)
    plot.text(1, base + 32, "FLOP per byte", "end")
    for name, x, y in operators:
        title = f"{name}: {x:.3g} FLOP per byte, {y / 1e9:.3g} GFLOP/s"
        at, up = place(x, y)
        plot.mark(at, up, 10, "work", title)
        plot.name(at, up, name)
    return plot.drawn(36, "roofline")


def size_histogram(bins: Sequence[tuple[str, int, int]]) -> Markup:
    """Draw how many transfers there were by size.

    Args:
        bins: Label, number of transfers, and their bytes.
    """
    if not bins:
        return Markup('<p class="none-told">nothing was transferred</p>')
    most, base = max(count for _, count, _ in bins), 96.0
    plot = _Plot(52, base)
    width = min(1 / len(bins), 0.11)
    every = math.ceil(len(bins) / _MOST_SIZES)
    plot.label(24, f"{most:,}")
    plot.label(base, "0")
    for k, (label, count, num_bytes) in enumerate(bins):
        height = 76 * count / most
        title = f"{label}: {count:,} transfers, {num_bytes:,} bytes"
        own = (1 - _GAP) * width
        plot.bar(k * width, own, base - height, height, "reading", title)
        if k % every == 0 or len(bins) < 10 or k % 2 == 0:
            kind = "" if k % every == 0 else "more"
            plot.text((k + own / width / 2) * width, base + 15, label, "middle", kind)
    plot.text(0, base + 32, "size of a transfer, at most")
    return plot.drawn(36, "sizes of transfers")


def copies_by_step(
    seconds: Mapping[str, Sequence[float]], counts: Mapping[str, Sequence[float]]
) -> Markup:
    """Draw how long the copies of each superstep would take, by who drives them.

    Args:
        seconds: Of every superstep, or of equal parts of a long run, by style.
        counts: How many copies those are.

    Returns:
        Nothing where none was predicted.
    """

    def title(style: str, step: int) -> str:
        text = _time_text(seconds[style][step])
        return f"{style}: {counts[style][step]:,.4g} copies, {text}"

    return _seconds_by_step(seconds, title, "predicted copies by superstep", list(seconds))


def times_by_step(seconds: Mapping[str, Sequence[float]]) -> Markup:
    """Draw how long each superstep took, of several runs beside each other.

    Args:
        seconds: Of every superstep, or of equal parts of a long run, by run; 0 where it
            had ended.
    """

    def title(run: str, step: int) -> str:
        return f"{run}: {_time_text(seconds[run][step])}"

    return _seconds_by_step(seconds, title, "times by superstep", SIDES)


def _seconds_by_step(
    seconds: Mapping[str, Sequence[float]],
    title: Callable[[str, int], str],
    label: str,
    colors: Sequence[str],
) -> Markup:
    """Draw a group of bars for each step, on a logarithmic axis."""
    most = max((max(own, default=0.0) for own in seconds.values()), default=0.0)
    if most <= 0:
        return Markup("")
    least = min(it for own in seconds.values() for it in own if it > 0)
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most) + 0.05)
    base, height = 130.0, 110.0
    plot = _Plot(60, base)
    for power in range(low, high + 1):
        y = base - height * (power - low) / (high - low)
        plot.tick(y, _time_text(10.0**power))
    for k, (name, own) in enumerate(seconds.items()):
        width = 1 / len(own)
        room = width / len(seconds)
        for step, it in enumerate(own):
            if it <= 0:
                continue
            up = height * (math.log10(it) - low) / (high - low)
            at, text = step * width + k * room, title(name, step)
            plot.bar(at, (1 - _GAP) * room, base - up, up, colors[k], text)
    plot.text(0, base + 16, "first")
    plot.text(1, base + 16, "last", "end")
    return plot.drawn(20, label)


def curve(
    points: Sequence[tuple[int, float]],
    name: str,
    best: int | None = None,
    kind: str = "loss",
) -> Markup:
    """Draw what was measured after epochs.

    Args:
        points: Epochs, rising, and values; what is no finite number is left out.
        name: What was measured.
        best: The epoch that is marked by a line.
        kind: Its color: ``loss`` or ``quality``.
    """
    shown = [(epoch, value) for epoch, value in points if math.isfinite(value)]
    if not shown:
        return Markup('<p class="none-told">nothing was measured</p>')
    base, height = 190.0, 170.0
    plot = _Plot(CURVE_LEFT, base)
    low, high = (choose(value for _, value in shown) for choose in (min, max))
    spread, last = (high - low) or abs(high) or 1.0, max(shown[-1][0], 2)

    def place(epoch: float, value: float) -> tuple[float, float]:
        across = (epoch - 1) / (last - 1)
        up = (value - low) / spread if high > low else 0.5
        return 0.99 * across, base - up * height

    for share in (0.0, 0.25, 0.5, 0.75, 1.0) if high > low else (0.0,):
        value = low + share * (high - low)
        plot.tick(place(1, value)[1], f"{value:.4g}")
    if best is not None:
        plot.upright(place(best, low)[0], base - height, f"best: epoch {best}")
    plot.line([place(*it) for it in shown], f"curve {kind}-line")
    if len(shown) <= _MOST_DOTS:
        for epoch, value in shown:
            plot.mark(*place(epoch, value), 6, kind, f"epoch {epoch}: {value:.6g}")
    plot.text(0, base + 18, "epoch 1")
    plot.text(1, base + 18, str(last), "end")
    return plot.drawn(24, f"{name} by epoch")


def pair_of_bars(before: float, after: float, label: str) -> Markup:
    """Draw two values below each other, as shares of the larger.

    Args:
        before: The first, not negative.
        after: The second.
        label: What they are.
    """
    most, width = max(before, after) or 1.0, 160
    parts = [
        _rect(0, 8 * k + 1, width * max(value, 0.0) / most, 6, SIDES[k], f"{value:,.6g}")
        for k, value in enumerate((before, after))
    ]
    return Markup(
        f'<svg class="chart pair" viewBox="0 0 {width} 16" role="img" '
        f'preserveAspectRatio="none" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _time_text(seconds: float) -> str:
    unit, scale = (
        ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    )
    return f"{seconds * scale:.3g} {unit}"
