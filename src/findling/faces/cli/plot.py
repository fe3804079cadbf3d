"""Bars with whiskers as SVG: no libraries, no scripts, readable on light and on dark ground."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

__all__ = ["Bar", "BarGroup", "draw_bars"]


class Bar(NamedTuple):
    """A value between 0 and 1 and the interval it lies in."""

    label: str
    value: float
    low: float
    high: float


class BarGroup(NamedTuple):
    """Bars that stand side by side above one name."""

    name: str
    bars: Sequence[Bar]


_BAR, _GAP, _MARGIN = 34, 28, 56
_HEIGHT, _TOP, _LINE = 260, 64, 20
_LETTER = 7.2
"""Width of a letter at 12 px, generously: names must not run into each other."""

_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
"""The palette of Okabe and Ito, which people with any colour vision can tell apart."""

_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1b1b1b; }
  .title { font-size: 15px; font-weight: 600; }
  .value { font-size: 10px; text-anchor: middle; }
  .name { text-anchor: middle; }
  .tick { text-anchor: end; }
  .ground { fill: #ffffff; }
  .rule { stroke: #d0d0d0; }
  .whisker { stroke: #1b1b1b; stroke-width: 1.5; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #ececec; }
    .ground { fill: #16181c; }
    .rule { stroke: #44484f; }
    .whisker { stroke: #ececec; }
  }
"""
"""Plain colours: programs that draw SVG outside browsers know no variables."""


def draw_bars(title: str, groups: Sequence[BarGroup]) -> str:
    """The whole drawing. The same label has the same colour in every group; a legend names them."""
    labels = list(dict.fromkeys(bar.label for group in groups for bar in group.bars))
    colors = {label: _COLORS[number % len(_COLORS)] for number, label in enumerate(labels)}
    widths = [max(len(group.bars) * _BAR, round(len(group.name) * _LETTER)) for group in groups]
    legend = _MARGIN + round(_LETTER * max(map(len, [title, *labels]))) + 2 * _GAP
    width = max(_MARGIN + sum(widths) + _GAP * (len(groups) + 1), legend)
    height = _TOP + _HEIGHT + 2 * _LINE + _LINE * len(labels) + _GAP
    body = [*_axis(width), *_grouped(groups, widths, colors), *_legend(labels, colors)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
            f' height="{height}" role="img" aria-label="{_attribute(title)}">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" width="{width}" height="{height}"/>',
            f'<text class="title" x="{_MARGIN}" y="28">{escape(title)}</text>',
            *body,
            "</svg>\n",
        ]
    )


def _axis(width: int) -> Iterator[str]:
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        yield f'<line class="rule" x1="{_MARGIN}" x2="{width - _GAP}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="{_MARGIN - 8}" y="{y + 4}">{tenth / 10:.1f}</text>'


def _grouped(groups: Sequence[BarGroup], widths: Sequence[int], colors: dict[str, str]) -> Iterator[str]:
    left = _MARGIN + _GAP
    for group, width in zip(groups, widths, strict=True):
        start = left + (width - len(group.bars) * _BAR) // 2
        for number, bar in enumerate(group.bars):
            yield from _bar(bar, start + number * _BAR, colors[bar.label])
        yield f'<text class="name" x="{left + width // 2}" y="{_y(0) + _LINE}">{escape(group.name)}</text>'
        left += width + _GAP


def _bar(bar: Bar, x: int, color: str) -> Iterator[str]:
    top, middle = _y(bar.value), x + _BAR // 2
    yield (
        f'<rect x="{x + 3}" y="{top}" width="{_BAR - 6}" height="{round(_y(0) - top, 1)}" fill="{color}">'
        f"<title>{escape(bar.label)}: {bar.value:.4f}, 95 % from {bar.low:.4f} to {bar.high:.4f}</title></rect>"
    )
    high, low = _y(bar.high), _y(bar.low)
    yield f'<path class="whisker" d="M{middle - 5} {high}h10m-5 0V{low}m-5 0h10"/>'
    yield f'<text class="value" x="{middle}" y="{round(min(top, high) - 5, 1)}">{bar.value:.3f}</text>'


def _legend(labels: Sequence[str], colors: dict[str, str]) -> Iterator[str]:
    for number, label in enumerate(labels):
        y = _y(0) + _LINE * (number + 2)
        yield f'<rect x="{_MARGIN}" y="{y}" width="12" height="12" fill="{colors[label]}"/>'
        yield f'<text x="{_MARGIN + 20}" y="{y + 10.5}">{escape(label)}</text>'


def _y(value: float) -> float:
    return round(_TOP + _HEIGHT * (1 - value), 1)


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
