"""Small plots as SVG: logarithmic axes, lines with points, colours for light and dark pages."""

from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 72, 16, 44, 52
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: 600 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.line { fill: none; stroke-width: 2 }
.s0 { stroke: #0969da; color: #0969da } .s1 { stroke: #bc4c00; color: #bc4c00 } .s2 { stroke: #1a7f37; color: #1a7f37 }
circle { fill: currentColor; stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .grid { stroke: #3d444d }
  .s0 { stroke: #4493f8; color: #4493f8 } .s1 { stroke: #f0883e; color: #f0883e } .s2 { stroke: #3fb950; color: #3fb950 }
}
"""


def compact(number):
    """Powers of ten as people write them: 0.01, 100, 10k, 1M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if suffix == 'k' else size):g}{suffix}"
    return f"{number:g}"


def decades(values):
    low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def plot(title, x_title, y_title, series):
    """Returns the SVG of `series`: a name and points (x, y) for each, all positive. At most three."""
    points = [point for _, line in series for point in line]
    (x_low, x_high), (y_low, y_high) = (decades([point[axis] for point in points]) for axis in (0, 1))

    def x_at(value):
        return LEFT + (log10(value) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y_at(value):
        return HEIGHT - BOTTOM - (log10(value) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="18">{escape(title)}</text>',
    ]
    for exponent in range(x_low, x_high + 1):
        x = x_at(10.0**exponent)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{compact(10.0**exponent)}</text>')
    for exponent in range(y_low, y_high + 1):
        y = y_at(10.0**exponent)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{compact(10.0**exponent)}</text>')
    middle = (TOP + bottom) / 2
    parts.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>')
    parts.append(f'<text transform="translate(18 {middle:.0f}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>')
    legend = LEFT
    for number, (name, line) in enumerate(series):
        at = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in line)
        parts.append(f'<g class="s{number}"><polyline class="line" points="{at}"/>')
        for x, y in line:
            parts.append(f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="3"><title>{x:g}: {y:.3g}</title></circle>')
        parts.append("</g>")
        if len(series) > 1:
            parts.append(f'<g class="s{number}"><circle cx="{legend + 5}" cy="32" r="4"/></g>')
            parts.append(f'<text x="{legend + 14}" y="36">{escape(name)}</text>')
            legend += 34 + 6.6 * len(name)
    return "\n".join([*parts, "</svg>"]) + "\n"
