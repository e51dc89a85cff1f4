"""Planes → drawings on the page: pixels, outlines, the peak, the bridge, and which side is which."""

from __future__ import annotations

import html
from collections.abc import Sequence

from lesioncount.report.planes import Plane

# In hundredths of the width of all planes of a candidate: arms and gap of the cross, radius of the ring.
_ARM, _GAP, _RADIUS = 3.4, 1.4, 1.3


def picture(plane: Plane, what: str, planes: Sequence[Plane]) -> str:
    """One of the planes of a candidate, as an element of the page.

    Parameters
    ----------
    plane : Plane
    what : str
        What it shows, for those who do not see it: "Candidate 3", say.
    planes : sequence of Plane
        All of them: they are drawn to one scale.
    """
    w, h = plane.width_mm, plane.height_mm
    sx, sy = w / plane.n_columns, h / plane.n_rows
    far = f"0 0 {w:.5g} {h:.5g}"
    near = "" if plane.near is None else f' data-far="{far}" data-near="{" ".join(f"{one:.5g}" for one in plane.near)}"'
    scale = f'transform="scale({sx:.6g} {sy:.6g})"'
    unit = sum(one.width_mm for one in planes) / 100
    neighbours = f'<path class="neighbours" {scale} d="{plane.neighbours}"/>' if plane.neighbours else ""
    return (
        f'<svg viewBox="{far}"{near} role="img" aria-label="{html.escape(what)}, plane {plane.name} through its peak">'
        f'<image href="{plane.picture}" width="{w:.5g}" height="{h:.5g}" preserveAspectRatio="none"/>'
        f'{neighbours}<path {scale} d="{plane.outline}"/>'
        f"{_bridge(plane, sx, sy, unit)}{_cross(plane.peak[0] * sx, plane.peak[1] * sy, unit)}</svg>{_letters(plane)}"
    )


def _cross(x: float, y: float, unit: float) -> str:
    arm, gap = _ARM * unit, _GAP * unit
    d = (
        f"M{x - arm:.5g} {y:.5g}H{x - gap:.5g}M{x + gap:.5g} {y:.5g}H{x + arm:.5g}"
        f"M{x:.5g} {y - arm:.5g}V{y - gap:.5g}M{x:.5g} {y + gap:.5g}V{y + arm:.5g}"
    )
    return f'<path class="halo" d="{d}"/><path class="cross" d="{d}"/>'


def _bridge(plane: Plane, sx: float, sy: float, unit: float) -> str:
    if plane.bridge is None:
        return ""
    place = f'cx="{plane.bridge[0] * sx:.5g}" cy="{plane.bridge[1] * sy:.5g}" r="{_RADIUS * unit:.4g}"'
    kind = "" if plane.is_bridge_here else ' class="elsewhere"'
    return f'<circle class="halo" {place}/><circle{kind} {place}/>'


def _letters(plane: Plane) -> str:
    """Over the picture, not in it: a close-up has them, too."""
    if plane.letters is None:
        return ""
    return f'<span class="ends" aria-hidden="true">{"".join(f"<i>{letter}</i>" for letter in plane.letters)}</span>'
