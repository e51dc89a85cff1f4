"""What a page says of a calibration: every number that changes a count."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lesioncount.trust.calibration import Calibration


def numbers_of(calibration: Calibration, /) -> dict[str, str]:
    """All numbers that change a count, by their names, in words.

    Examples
    --------
    >>> numbers_of(Calibration(0.8, -0.5, crowding=0.3, typical_count=4))  # doctest: +NORMALIZE_WHITESPACE
    {'Slope': '0.8 on the logit: less certain than the map',
     'Offset': '−0.5 on the logit: fewer lesions than the map',
     'Extra': '0 lesions per scan without a candidate of their own',
     'Crowding': '+0.3 on the logit for each factor e in the number of lesions, from 4 on'}
    """
    found = dict(_every(calibration.of_peaks))
    if calibration.of_regions is not None:
        found["Mixture"] = "half of each count is that of peaks, corrected as above; half that of regions, as follows"
        found |= {f"{name} of regions": words for name, words in _every(calibration.of_regions)}
    return found


def further_numbers(calibration: Calibration, /) -> str:
    """The numbers that the table of a comparison has no column for, in one text."""
    return "; ".join(f"{name.lower()} {words}" for name, words in _further(calibration))


def _every(one: Calibration) -> Iterator[tuple[str, str]]:
    certain = "" if one.slope == 1 else f": {'less' if one.slope < 1 else 'more'} certain than the map"
    yield "Slope", f"{one.slope:.3g} on the logit{certain}"
    more = "" if not one.offset else f": {'fewer' if one.offset < 0 else 'more'} lesions than the map"
    yield "Offset", f"{_signed(one.offset)} on the logit{more}"
    if one.spread:
        yield "Spread", f"{one.spread:.3g} on the logit: scans differ as a whole"
    share = f", and {one.extra_share:.2g} for each that has one" if one.extra_share else ""
    yield "Extra", f"{one.extra_rate:.3g} lesions per scan without a candidate of their own{share}"
    yield from _further(one)


def _further(one: Calibration) -> Iterator[tuple[str, str]]:
    if one.has_extra and not math.isinf(one.extra_shape):
        yield "Shape of extra", f"{one.extra_shape:.3g}: the smaller, the more scans differ in them"
    if one.crowding:
        number = f"{_signed(one.crowding)} on the logit for each factor e in the number of lesions"
        yield "Crowding", f"{number}, from {one.typical_count:.3g} on"
    for name, weight in one.weights.items():
        yield (
            f"Weight of {name}",
            f"{_signed(weight)} on the logit per unit, from {one.typical_features.get(name, 0):.3g} on",
        )
    if one.ripple:
        yield "Ripple", f"peaks that rise by less than {one.ripple:.3g} are left out"
    if one.draws:
        n = len(one.members)
        which = ("could give what is stated", "medians") if one.is_stated else ("fit about as well", "of the best")
        yield "Draws", f"counts are the average over {n} calibrations that {which[0]}; numbers here are {which[1]}"


def _signed(number: float) -> str:
    return f"{number:+.3g}".replace("-", "−") if number else "0"
