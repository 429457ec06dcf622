"""Charts without scripts: histograms, steps, curves, fingerprints. The stylesheet sets colors and sizes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from likewise.io.html import Html, element

_WIDTH, _HEIGHT = 640.0, 232.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 12.0, 14.0, 46.0
_MOST_TICKS = 5
# Distances between the numbers below an axis.
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, math.inf)


@dataclass(frozen=True)
class _Frame:
    """Mapping of values to coordinates."""

    low: float
    high: float
    top: float

    def x(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return _LEFT + (value - self.low) / span * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / (self.top or 1.0) * (_HEIGHT - _TOP - _BOTTOM)


def histogram(
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    label: str,
    mark: float | None = None,
    mark_text: str = "",
    address: Callable[[float, float], Html] | None = None,
) -> Html:
    """Return a histogram."""
    frame = _Frame(edges[0], edges[-1], float(max([*counts, 1])))
    parts = [*_y_axis(frame, [f"{value:,.0f}" for value in _ticks(int(frame.top))], _ticks(int(frame.top)))]
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        if not count:
            continue
        x, width = frame.x(low), frame.x(high) - frame.x(low)
        # Keep a bar of one visible among millions.
        height = max(1.5, frame.y(0) - frame.y(count))
        told = f"{_number(low)} to {_number(high)}: {count:,}"
        bar = element(
            "rect", element("title", told), class_="bar", x=_r(x + 0.5), y=_r(frame.y(0) - height),
            width=_r(max(0.5, width - 1)), height=_r(height),
        )  # fmt: skip
        parts.append(bar if address is None else element("a", bar, href=address(low, high), aria_label=told))
    return _drawn(frame, parts, label, mark, mark_text)


def steps(points: Sequence[tuple[float, int]], *, label: str, mark: float | None = None, mark_text: str = "") -> Html:
    """Return a step chart of the counts from each value on; points ascend by value."""
    frame = _Frame(points[0][0], points[-1][0], float(max(max(count for _, count in points), 1)))
    ticks = _ticks(int(frame.top))
    path = [f"M{_r(frame.x(points[0][0]))} {_r(frame.y(points[0][1]))}"]
    for value, count in points[1:]:
        path.append(f"H{_r(frame.x(value))}V{_r(frame.y(count))}")
    parts = [*_y_axis(frame, [f"{value:,.0f}" for value in ticks], ticks)]
    parts.append(element("path", class_="line", d="".join(path)))
    return _drawn(frame, parts, label, mark, mark_text)


def curve(
    points: Sequence[tuple[float, float]], *, label: str, mark: tuple[float, float] | None = None, mark_text: str = ""
) -> Html:
    """Return a line chart of probabilities over similarities, with an optional marked point."""
    frame = _Frame(0.0, 1.0, 1.0)
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    parts = [*_y_axis(frame, [f"{value:g}" for value in ticks], ticks)]
    parts.append(_line(frame, points))
    parts += _x_axis(frame, label)
    if mark is not None:
        # Place the text where the curve leaves space: at the bottom if the point is high, otherwise at the top.
        parts += _mark(frame, mark[0], mark_text, at=_HEIGHT - _BOTTOM - 10 if mark[1] > 0.5 else _TOP + 8)
        parts.append(element("circle", class_="point", cx=_r(frame.x(mark[0])), cy=_r(frame.y(mark[1])), r=5))
    return _svg(parts, label)


def density(
    points: Sequence[tuple[float, float]], *, label: str, mark: float | None = None, mark_text: str = ""
) -> Html:
    """Return a line chart of counts over similarities, on a log scale so that valleys show next to peaks."""
    # Add one, so that zero is at the axis.
    heights = [(value, math.log10(1.0 + count)) for value, count in points]
    frame = _Frame(points[0][0], points[-1][0], max(math.log10(2.0), *(height for _, height in heights)))
    counts = [0, *(10**power for power in range(20) if math.log10(1 + 10**power) <= frame.top)]
    parts = [*_y_axis(frame, [f"{count:,}" for count in counts], [math.log10(1 + count) for count in counts])]
    parts.append(_line(frame, heights))
    return _drawn(frame, parts, label, mark, mark_text)


def bars(rows: Sequence[tuple[str | Html, int]], *, label: str) -> Html:
    """Return a table of counts with a bar for each; names may be links."""
    most = max([count for _, count in rows] + [1])
    body = []
    for name, count in rows:
        bar = element("rect", class_="bar", x=0, y=2, width=_r(200 * count / most), height=12)
        drawn = element("svg", bar, viewBox="0 0 200 16", class_="rowbar", aria_hidden="true")
        cells = [
            element("th", name, scope="row"),
            element("td", f"{count:,}", class_="number"),
            element("td", drawn, class_="wide"),
        ]
        body.append(element("tr", cells))
    return element("table", [element("caption", label), element("tbody", body)], class_="bars")


def fingerprints(a: int, b: int, bits: int) -> Html:
    """Return two fingerprints bit by bit, highest bit first, 64 per line; differing bits are marked."""
    lines = []
    for start in range(0, bits, 64):
        count = min(64, bits - start)
        shift = bits - start - count
        cells = []
        for side, value in enumerate((a, b)):
            for place in range(count):
                bit = count - 1 - place + shift
                is_set, differs = value >> bit & 1, (a ^ b) >> bit & 1
                name = f"bit{' set' if is_set else ''}{' differs' if differs else ''}"
                text = element("title", f"bit {bit}: {'one' if is_set else 'zero'}{', differs' if differs else ''}")
                x = place * 10 + (place // 8) * 4
                cells.append(element("rect", text, class_=name, x=x + 1, y=side * 22 + 1, width=8, height=18))
        cells += [element("text", letter, class_="side", x=-14, y=y) for letter, y in (("A", 14), ("B", 36))]
        lines.append(element("svg", cells, viewBox="-16 0 690 44", class_="bits", aria_hidden="true"))
    distance = (a ^ b).bit_count()
    digits = bits // 4
    spoken = f"A {a:0{digits}x}, B {b:0{digits}x}: {distance} of {bits} bits differ"
    return element("figure", [*lines, element("figcaption", spoken)], class_="fingerprints")


def similarity_bar(low: float, high: float, start: float) -> Html:
    """Return a small bar from `start` to 1 that shows a range of similarities."""
    start = min(start, low)
    scale = 100 / (1.0 - start or 1.0)
    x, width = scale * (low - start), max(3.0, scale * (high - low))
    parts = [
        element("rect", class_="track", x=0, y=4, width=100, height=4, rx=2),
        element(
            "rect", class_="bar", x=_r(min(x, 97.0)), y=2, width=_r(min(width, 100 - min(x, 97.0))), height=8, rx=2
        ),
    ]
    return element("svg", parts, viewBox="0 0 100 12", class_="range", aria_hidden="true")


def _line(frame: _Frame, points: Sequence[tuple[float, float]]) -> Html:
    line = "".join(f"{'L' if number else 'M'}{_r(frame.x(x))} {_r(frame.y(y))}" for number, (x, y) in enumerate(points))
    return element("path", class_="line", d=line)


def _drawn(frame: _Frame, parts: Sequence[Html], label: str, mark: float | None, mark_text: str) -> Html:
    """Return a chart with its horizontal axis and its mark."""
    marked = [] if mark is None else _mark(frame, mark, mark_text)
    return _svg([*parts, *_x_axis(frame, label), *marked], label)


def _svg(parts: Sequence[object], label: str) -> Html:
    return element(
        "svg",
        [element("title", label), *parts],
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        class_="chart",
        role="group" if any(part.startswith("<a ") for part in map(str, parts)) else "img",
    )


def _x_axis(frame: _Frame, label: str) -> list[Html]:
    base = frame.y(0)
    parts = [element("line", class_="axis", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=_r(base), y2=_r(base))]
    step = next(step for step in _STEPS if (frame.high - frame.low) / step <= _MOST_TICKS + 3)
    first = math.ceil(frame.low / step - 1e-9)
    for number in range(first, math.floor(frame.high / step + 1e-9) + 1):
        value = number * step
        anchor = "end" if frame.high - value < step / 4 else "middle"
        parts.append(element("text", _number(value), x=_r(frame.x(value)), y=_r(base + 18), text_anchor=anchor))
    parts.append(element("text", label, class_="label", x=_WIDTH - _RIGHT, y=_HEIGHT - 4, text_anchor="end"))
    return parts


def _y_axis(frame: _Frame, names: Sequence[str], values: Sequence[float]) -> list[Html]:
    parts = []
    for name, value in zip(names, values, strict=True):
        y = frame.y(value)
        parts.append(element("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=_r(y), y2=_r(y)))
        parts.append(element("text", name, x=_LEFT - 6, y=_r(y + (4 if value else 1)), text_anchor="end"))
    return parts


def _mark(frame: _Frame, value: float, text: str, at: float = _TOP + 8) -> list[Html]:
    x = frame.x(value)
    is_right = x > _WIDTH * 0.6
    return [
        element("line", class_="mark", x1=_r(x), x2=_r(x), y1=_TOP, y2=_r(frame.y(0))),
        element(
            "text", text, class_="mark", x=_r(x - 5 if is_right else x + 5), y=_r(at),
            text_anchor="end" if is_right else "start",
        ),
    ]  # fmt: skip


def _ticks(top: int) -> list[float]:
    """Return round numbers from 0 to about `top`."""
    step = 1
    while top // step >= _MOST_TICKS:
        for factor in (2, 5, 10):
            if top // (step * factor) < _MOST_TICKS:
                step *= factor
                break
        else:
            step *= 10
    return [float(value) for value in range(0, top + 1, step)]


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _r(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@cache
def stylesheet() -> str:
    """Return the stylesheet of the page and of reports: light and dark, without external resources."""
    return (files("likewise.runs.drawing") / "style.css").read_text(encoding="utf-8")
