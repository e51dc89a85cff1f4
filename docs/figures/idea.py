"""Draws idea.svg, the picture of the method in the README: ``python docs/figures/idea.py``."""

from pathlib import Path

import numpy as np

import lesioncount as lc

COLUMNS, ROWS, CELL = 22, 16, 12
LEFT, TOP = 24, 74
INK, FAINT, BAR = "#1b2a38", "#5b6b7a", "#0072b2"  # blue and vermilion of the Okabe-Ito palette: safe for all eyes
MARK = "#d55e00"


def probability_map() -> np.ndarray:
    """Three bumps: a sure one, a likely one, and one that is probably nothing."""
    y, x = np.mgrid[:ROWS, :COLUMNS]
    bumps = ((0.9, 4, 5, 2.6), (0.6, 10, 15, 2.2), (0.25, 2, 18, 1.6))
    return np.max([p * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / r**2) for p, cy, cx, r in bumps], axis=0)


def shade(p: float) -> str:
    """White to deep blue."""
    low, high = np.array([255, 255, 255]), np.array([8, 48, 107])
    return "#" + "".join(f"{int(v):02x}" for v in low + (high - low) * p**0.7)


def text(
    x: float, y: float, words: str, size: int = 13, colour: str = INK, anchor: str = "middle", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{words}</text>'
    )


def grid(p: np.ndarray, left: int) -> list[str]:
    cells = [
        f'<rect x="{left + x * CELL}" y="{TOP + y * CELL}" width="{CELL}" height="{CELL}" fill="{shade(v)}"/>'
        for (y, x), v in np.ndenumerate(p)
        if v > 0.005
    ]
    frame = f'<rect x="{left}" y="{TOP}" width="{COLUMNS * CELL}" height="{ROWS * CELL}" fill="none" stroke="{FAINT}"/>'
    return [*cells, frame]


def outline(labels: np.ndarray, left: int) -> str:
    """The edges between candidates and background, as one path."""
    path = []
    inside = np.pad(labels > 0, 1)
    for y, x in np.argwhere(labels > 0):
        px, py = left + x * CELL, TOP + y * CELL
        edges = {
            (0, 1): f"M{px} {py}h{CELL}", (2, 1): f"M{px} {py + CELL}h{CELL}",
            (1, 0): f"M{px} {py}v{CELL}", (1, 2): f"M{px + CELL} {py}v{CELL}",
        }  # fmt: skip
        path += [line for (dy, dx), line in edges.items() if not inside[y + dy, x + dx]]
    return f'<path d="{"".join(path)}" fill="none" stroke="{MARK}" stroke-width="2" stroke-linecap="square"/>'


def arrow(x: float) -> str:
    y = TOP + ROWS * CELL / 2
    return f'<path d="M{x} {y}h26m-8 -6l8 6l-8 6" fill="none" stroke="{INK}" stroke-width="2"/>'


def main() -> None:
    p = probability_map()
    result = lc.count_lesions(p)
    width = COLUMNS * CELL
    second = LEFT + width + 54
    third = second + width + 60
    body = [
        *grid(p, LEFT), arrow(LEFT + width + 14), *grid(p, second), outline(result.candidates.label_map(), second),
        arrow(second + width + 14),
        text(LEFT + width / 2, 34, "probability map", 17, weight=600),
        text(LEFT + width / 2, 56, "what a segmentation network gives", 13, FAINT),
        text(second + width / 2, 34, "candidates, and how likely each is", 17, weight=600),
        text(second + width / 2, 56, "regions above 0.1; the highest voxel of each", 13, FAINT),
        text(third + 110, 34, "number of lesions", 17, weight=600),
        text(third + 110, 56, "Poisson-binomial", 13, FAINT),
    ]  # fmt: skip
    bottoms = result.candidates.bbox[:, 2]
    for (y, x), existence, bottom in zip(result.candidates.peak_index, result.existence, bottoms, strict=True):
        px, py = second + (x + 0.5) * CELL, TOP + (y + 0.5) * CELL
        body.append(f'<circle cx="{px}" cy="{py}" r="4" fill="none" stroke="{MARK}" stroke-width="2"/>')
        body.append(text(px, TOP + bottom * CELL + 17, f"{existence:.2f}", 15, INK, weight=600))
    base = TOP + ROWS * CELL - 22
    for count, mass in enumerate(result.distribution.pmf()):
        height, left = mass * 250, third + 8 + count * 54
        body.append(f'<rect x="{left}" y="{base - height:.1f}" width="40" height="{height:.1f}" fill="{BAR}"/>')
        body.append(text(left + 20, base - height - 7, f"{mass:.0%}", 13))
        body.append(text(left + 20, base + 18, str(count), 15, weight=600))
    body.append(f'<path d="M{third} {base}h224" stroke="{INK}" stroke-width="1.5"/>')
    total, height = third + 248, TOP + ROWS * CELL + 24
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" width="{total}" height="{height}" '
        f'font-family="system-ui, sans-serif" role="img">\n'
        "<title>A probability map, its three candidates, and the distribution of the number of lesions</title>\n"
        f'<rect width="{total}" height="{height}" rx="8" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )
    Path(__file__).with_name("idea.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
