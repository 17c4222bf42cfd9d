"""Charts as inline SVG: small functions from figures to text, colored by CSS classes."""

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup, escape

from graphsys.core.memory import format_bytes

SIDES = ("before", "after")
"""Colors of the two runs of a comparison."""
_WIDTH = 900
_CARD = 340
"""Widths of viewBoxes: about what a wide chart, and a card's, has on a screen."""
_MOST_DOTS = 100
"""Points of a curve that can be pointed at; of more, the line is drawn alone."""


def _svg(height: float, label: str, parts: Sequence[str], width: int = _WIDTH) -> Markup:
    return Markup(
        f'<svg class="chart" viewBox="0 0 {width} {height:g}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" '
        f'height="{max(height, 0):.2f}"><title>{escape(title)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


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
    left, base, height = 92.0, 190.0, 170.0

    def up(rate: float) -> float:
        return height * (math.log10(rate) - low) / (high - low)

    parts = []
    for power in range(low, high + 1):
        y = base - up(10.0**power)
        parts.append(
            f'<line class="tick" x1="{left}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_text(left - 6, y + 4, f"{_bytes_text(10.0**power)}/s", "end"))
    width = min((_WIDTH - left) / len(rates), 60.0)
    for k, rate in enumerate(rates):
        if rate:
            title = f"{what} {k}: {_bytes_text(rate)}/s, {100 * rate / copied:.2g} %"
            at = left + k * width
            parts.append(
                _rect(at, base - up(rate), max(width - 2, 0.5), up(rate), "work", title)
            )
    y = base - up(copied)
    parts += [
        f'<line class="limit-line" x1="{left}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>',
        _text(_WIDTH, y - 5, f"what this memory copies: {_bytes_text(copied)}/s", "end"),
        _text(left, base + 18, axis),
    ]
    return _svg(base + 24, "useful bytes a second", parts)


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
    left, base, height = 92.0, 190.0, 176.0
    width = min((_WIDTH - left) / len(points), 60.0)
    parts = []
    for k, (title, sizes) in enumerate(points):
        y = base
        for part, (name, size) in enumerate(sizes.items()):
            up = height * size / most
            y -= up
            if size:
                text = f"{title}, {name}: {format_bytes(size)}"
                x, wide = left + k * width, max(width - 0.5, 0.5)
                parts.append(_rect(x, y, wide, up, f"part{part}", text))
    parts += [
        _text(left - 6, base - height + 10, format_bytes(most), "end"),
        _text(left - 6, base, "0", "end"),
        _text(left, base + 16, f"{seconds[0]:.3g} s"),
        _text(left + len(points) * width, base + 16, f"{seconds[1]:.3g} s", "end"),
    ]
    return _svg(base + 20, "memory over time", parts)


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
    left, base, height = 104.0, 250.0, 230.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(y) - low_y) / (high_y - low_y)
        return left + across * (_WIDTH - left - 150), base - up * height

    roof = [(10.0**low_x, bandwidth * 10.0**low_x)]
    roof += [(ridge, peak)] if ridge else []
    roof.append((10.0**high_x, min(peak, bandwidth * 10.0**high_x)))
    line = " ".join(f"{x:.1f},{min(y, base):.1f}" for x, y in (place(*at) for at in roof))
    parts = [f'<polyline class="roof" points="{line}"/>']
    for power in range(low_y, high_y + 1):
        y = place(10.0**low_x, 10.0**power)[1]
        parts.append(_text(left - 6, y + 4, f"{10.0 ** (power - 9):g} GFLOP/s", "end"))
    for power in range(low_x, high_x + 1):
        x = place(10.0**power, 10.0**low_y)[0]
        parts.append(_text(x, base + 16, f"{10.0**power:g}", "middle"))
    parts.append(_text(_WIDTH - 150, base + 32, "FLOP per byte", "end"))
    for name, x, y in operators:
        title = f"{name}: {x:.3g} FLOP per byte, {y / 1e9:.3g} GFLOP/s"
        at_x, at_y = place(x, y)
        parts.append(_rect(at_x - 5, at_y - 5, 10, 10, "work", title))
        parts.append(_text(at_x + 9, at_y + 4, name))
    return _svg(base + 36, "roofline", parts)


def size_histogram(bins: Sequence[tuple[str, int, int]]) -> Markup:
    """Draw how many transfers there were by size.

    Args:
        bins: Label, number of transfers, and their bytes.
    """
    if not bins:
        return Markup('<p class="none-told">nothing was transferred</p>')
    most, left, base = max(count for _, count, _ in bins), 52.0, 96.0
    width = min((_WIDTH - left) / len(bins), 90.0)
    parts = [_text(left - 4, 24, f"{most:,}", "end"), _text(left - 4, base, "0", "end")]
    for k, (label, count, num_bytes) in enumerate(bins):
        height = 76 * count / most
        title = f"{label}: {count:,} transfers, {num_bytes:,} bytes"
        parts.append(
            _rect(left + k * width + 2, base - height, width - 4, height, "reading", title)
        )
        if len(bins) < 10 or k % 2 == 0:
            parts.append(_text(left + (k + 0.5) * width, base + 15, label, "middle"))
    parts.append(_text(left, base + 32, "size of a transfer, at most"))
    return _svg(base + 36, "sizes of transfers", parts)


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
    left, base, height = 92.0, 130.0, 110.0
    parts = []
    for power in range(low, high + 1):
        y = base - height * (power - low) / (high - low)
        parts.append(
            f'<line class="tick" x1="{left}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_text(left - 6, y + 4, _time_text(10.0**power), "end"))
    for k, (name, own) in enumerate(seconds.items()):
        width = (_WIDTH - left) / len(own)
        room = width / len(seconds)
        for step, it in enumerate(own):
            if it <= 0:
                continue
            up = height * (math.log10(it) - low) / (high - low)
            parts.append(
                _rect(
                    left + step * width + k * room,
                    base - up,
                    max(room - 0.3, 0.5),
                    up,
                    colors[k],
                    title(name, step),
                )
            )
    parts.append(_text(left, base + 16, "first"))
    parts.append(_text(_WIDTH, base + 16, "last", "end"))
    return _svg(base + 20, label, parts)


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
    left, base, height = 72.0, 190.0, 170.0
    low, high = (choose(value for _, value in shown) for choose in (min, max))
    spread, last = (high - low) or abs(high) or 1.0, max(shown[-1][0], 2)

    def place(epoch: float, value: float) -> tuple[float, float]:
        across = (epoch - 1) / (last - 1)
        up = (value - low) / spread if high > low else 0.5
        return left + across * (_WIDTH - left - 8), base - up * height

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0) if high > low else (0.0,):
        value = low + share * (high - low)
        y = place(1, value)[1]
        parts.append(
            f'<line class="tick" x1="{left}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_text(left - 6, y + 4, f"{value:.4g}", "end"))
    if best is not None:
        x = place(best, low)[0]
        parts.append(
            f'<line class="limit-line" x1="{x:.1f}" x2="{x:.1f}" y1="{base - height}" '
            f'y2="{base}"><title>best: epoch {best}</title></line>'
        )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*it) for it in shown))
    parts.append(f'<polyline class="curve {kind}-line" points="{line}"/>')
    if len(shown) <= _MOST_DOTS:
        for epoch, value in shown:
            x, y = place(epoch, value)
            title = f"epoch {epoch}: {value:.6g}"
            parts.append(_rect(x - 3, y - 3, 6, 6, kind, title))
    parts += [_text(left, base + 18, "epoch 1"), _text(_WIDTH, base + 18, str(last), "end")]
    return _svg(base + 24, f"{name} by epoch", parts)


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
