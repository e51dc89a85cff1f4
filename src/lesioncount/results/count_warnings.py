"""A count that may say less than it seems to → warnings, each of which names the option that helps.

A warning opens with words that are the same for all scans of a run, so that it can be said once of many of them. What
follows `_HERE` is about the one map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lesioncount.counting import LesionCount
from lesioncount.results.value_shares import background_of, is_picture
from lesioncount.trust.calibration import NOT_CHECKED

_HERE = " In this map: "

# Candidates of so few voxels are mostly noise: of the lesions in 30 expert masks of multiple sclerosis, 11 % are so
# small; of the candidates of a network in two of the brains, 78 %.
_SPECK_VOXELS = 2

# Fewer lesions than this need no warning, whatever they come from.
_FEWEST_LESIONS = 1

# Components above 0.5 that share a candidate with another: from so many on, and from this share of all components on.
# Below that, counts of touching nuclei are right within a fifth; above, they are half of the truth.
_FEWEST_JOINED, _JOINED_SHARE = 5, 0.25

# Cells in a dense culture cover up to half of a picture; background covers nearly all of it.
_MOST = 0.5

SPECKS = (
    "Most of the expected lesions are candidates of one or two voxels: these are often noise. Set a smallest size "
    "(--min-size 3vox, --min-size 3mm3 or --protocol ms)."
)
JOINED = (
    "Candidates hold several components above {threshold:g}: lesions that touch are counted as one. If they are "
    "separate lesions, count peaks (--protocol peaks), or raise the threshold (--threshold {threshold:g})."
)
MOSTLY_ABOVE = (
    "Most of the map lies above the threshold: is it the probability of lesions, not of background? Choose the channel "
    "(--channel), count inside a mask (--mask) or raise the threshold (--threshold)."
)
UNNAMED = (
    "Some regions are not in the table of names: they are called by their numbers. Add them to the table "
    "(--region-names)."
)

# Two stop signs: what was counted may be no map of probabilities.
PICTURE = (
    "Hardly any of the map is background: it looks like a picture, or like a network that has not learnt. Expected are "
    "the probabilities of one class."
)
DARK_PICTURES = (
    "Taken together, these maps look like dark pictures: much is neither background nor foreground, and hardly "
    "anything is bright. Expected are the probabilities of one class. If the network is just unsure, calibrate it."
)

# Three ways to a count of 0 that says nothing about lesions.
EMPTY_MASK = (
    "The mask has no voxel: nothing was looked at. Make it again (did the brain extraction fail?), or leave --mask out."
)
ELSEWHERE = (
    "The map is above the threshold only outside of what was looked at: is it the right mask? Look at both, or leave "
    "--mask out."
)
SCALED_TWICE = (
    "No value of the map is above 1 before it is scaled: it seems to hold probabilities already. If so, leave --scale "
    "out."
)

# From so many scans on, it is an error if all of them are warned of it. A mask without a voxel is never right. The
# others may be right of a healthy patient, whose only candidates are false alarms in the skull, or whose map in percent
# stays below 1; not of a whole cohort.
_FEWEST_ALIKE = {EMPTY_MASK: 1, ELSEWHERE: 2, SCALED_TWICE: 2}

# A scale up to this makes less than any usual threshold of what is at most 1: 1/255, 1/65535, percent. What decides are
# values before scaling, not how low they are after it: healthy maps may be low everywhere. (Of 100 maps of leaves
# without a lesion, the lowest reaches 0.026.)
_LARGEST_SCALE = 0.01

UNENCRYPTED = (
    "The map came over http, which is not encrypted: others could have read or changed it on its way. Use https where "
    "there is one."
)

UNLISTED = (
    "Scans without a detection are not in the table, and cannot be known: they are not counted. List all scans "
    "(--scans TABLE), or give their images (--images)."
)
DOUBLED = (
    "Many detections lie close together: one lesion seems to be found several times. Only the highest of those within "
    "{distance:g} mm counts; say what is close with --merge-within."
)
UNPLACED = (
    "Distances between detections are not known in millimetres, so that doubles are counted twice. Give the size of a "
    "pixel (--spacing), images (--images), or columns of places."
)

# Regions that a warning names.
_NAMED = 5


def warnings_of(
    result: LesionCount,
    n_components: int,
    *,
    component_threshold: float,
    n_voxels: int,
    largest: float | None = None,
    scale: float | None = None,
    shares: Sequence[int] = (),
) -> Iterator[str]:
    """All warnings about the count of a map.

    Parameters
    ----------
    result : LesionCount
    n_components : int
        Connected components above ``component_threshold``, of the same connectivity and smallest size.
    component_threshold : float
    n_voxels : int
        Of the map, or of the part of it that was looked at.
    largest : float, optional
        The largest probability of the whole map, also where nobody looked; None if it is not known.
    scale : float, optional
        That a user has given; none of logits.
    shares : sequence of int, optional
        How its values are spread (`ValueSample.shares`); none if that is not known.
    """
    yield from _nothing_seen(result, n_voxels, largest, scale)
    if result.candidates.warning is not None:
        yield str(result.candidates.warning)
    elif shares and is_picture(shares):
        yield f"{PICTURE}{_HERE}{background_of(shares):.0%} of the voxels are below 0.3."
    yield from _specks(result)
    yield from _joined(result, n_components, component_threshold)
    share = float(result.candidates.n_voxels.sum()) / max(n_voxels, 1)
    if share > _MOST:
        yield f"{MOSTLY_ABOVE}{_HERE}{share:.0%} of the voxels."
    unnamed = () if result.places is None else result.places.unnamed
    if unnamed:
        yield f"{UNNAMED}{_HERE}{', '.join(unnamed[:_NAMED])}{' …' if len(unnamed) > _NAMED else ''}."


def doubled(n_near: int, n: int, distance_mm: float) -> str:
    """That many detections have a neighbour within this distance."""
    return f"{DOUBLED.format(distance=distance_mm)}{_HERE}{n_near} of {n} detections."


def _nothing_seen(result: LesionCount, n_voxels: int, largest: float | None, scale: float | None) -> Iterator[str]:
    """Why a count may be 0 whatever the map says of lesions."""
    if n_voxels == 0:
        yield EMPTY_MASK
    if largest is None:
        return
    found = len(result.candidates) + result.candidates.n_dropped
    if n_voxels > 0 and found == 0 and largest > result.protocol.threshold:
        yield f"{ELSEWHERE}{_HERE}the largest value of the whole map is {largest:.2g}."
    if scale is not None and scale <= _LARGEST_SCALE and 0 < largest <= scale * (1 + 1e-6):
        yield f"{SCALED_TWICE}{_HERE}the largest value is {largest / scale:.2g}, and {largest:.2g} after scaling."


def said_of_all(warnings: Sequence[Sequence[str]], n_items: int) -> str | None:
    """Why no count of a run says anything: a warning that all its maps share; None if some say something.

    Parameters
    ----------
    warnings : sequence of sequence of str
        Of each map.
    n_items : int
        Scans, or patients, whose maps they are.
    """
    kinds = [{in_general(warning) for warning in one} for one in warnings]
    shared = set.intersection(*kinds) if kinds else set()
    return next((one for one, fewest in _FEWEST_ALIKE.items() if one in shared and n_items >= fewest), None)


def void_notes(warnings: Sequence[str]) -> list[str]:
    """The headlines of what the row of a scan must say: that its count says nothing, or rests on no counted scan."""
    is_void = (*_FEWEST_ALIKE, PICTURE)
    return [f"{headline(one)}." for one in warnings if in_general(one) in is_void or NOT_CHECKED in one]


def _specks(result: LesionCount) -> Iterator[str]:
    is_speck = result.candidates.n_voxels <= _SPECK_VOXELS
    in_specks, expected = float(result.existence[is_speck].sum()), float(result.existence.sum())
    if in_specks >= _FEWEST_LESIONS and in_specks > expected / 2:
        n, lesions = f"{is_speck.sum()} of {len(is_speck)}", f"{in_specks:.1f} of {expected:.1f}"
        yield f"{SPECKS}{_HERE}{n} candidates, {lesions} expected lesions."


def _joined(result: LesionCount, n_components: int, threshold: float) -> Iterator[str]:
    if result.protocol.threshold >= threshold:
        return
    # Each component lies in one candidate, and each candidate that reaches so high holds at least one component. (One
    # that is only large enough at the low threshold may hold none that is: then more are joined than are seen here.)
    n_high = int((result.candidates.peak_probability > threshold).sum())
    joined = n_components - n_high
    if joined >= _FEWEST_JOINED and joined >= _JOINED_SHARE * n_components:
        where = f"{n_components} components in {n_high} candidate{'' if n_high == 1 else 's'}."
        yield JOINED.format(threshold=threshold) + _HERE + where


def in_general(warning: str) -> str:
    """What a warning says of any map."""
    return warning.partition(_HERE)[0]


def is_joined(warning: str) -> bool:
    """Whether it says that lesions which touch are counted as one."""
    return warning.startswith(JOINED.partition("{")[0])


def in_short(warning: str) -> str:
    """A warning that is explained elsewhere: its first words, and what it says of this map."""
    about, here, numbers = warning.partition(_HERE)
    return f"{headline(about)}.{here}{numbers}"


def headline(warning: str) -> str:
    """Its first words, for a table."""
    return re.split(r"[:.](?: |$)", warning, maxsplit=1)[0]
