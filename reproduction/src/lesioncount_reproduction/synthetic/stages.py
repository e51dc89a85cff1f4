"""A patient from session to session: what the head holds at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from lesioncount_reproduction.synthetic.anatomy import Anatomy
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lesions import aged, chronic_lesions, gad_lesions, mimics
from lesioncount_reproduction.synthetic.lifetimes import Lesion, Plan, changed, new_lesions, vanishes
from lesioncount_reproduction.synthetic.placing import Room, WhiteMatter
from lesioncount_reproduction.synthetic.vessels import Tube, long_vessels, short_vessels

Shining = TypeVar("Shining", Blob, Tube)

# Of new lesions, the share that lies beside an old one, and the free space between the two in mm. Below 0 they overlap.
_BESIDE, _BETWEEN_MM = 0.15, (-1.0, 3.0)

# Shares of blobs that look like lesions, and of pieces of vessels, that are not there at the next session. As many
# others come.
_MIMICS_CHANGE, _PIECES_CHANGE = 0.2, 0.1

# How much the brightness of vessels and look-alikes varies between sessions, and that of all that enhances.
_VESSELS_VARY, _CONTRAST_VARIES = 0.1, 0.08


@dataclass(frozen=True)
class Stage:
    """A patient at one session, in a head that has not moved.

    Attributes
    ----------
    vessels, pieces : tuple of Tube
        Those that are always there, and short ones, which may come and go.
    chronic : tuple of Blob
        Old lesions, which do not enhance; what is left of those that have vanished is among them.
    lesions : tuple of Lesion
        Enhancing ones.
    n_ever : int
        Lesions so far, including those that have vanished.
    contrast : float
        How much gadolinium lets everything shine, 1 in the mean.
    """

    plan: Plan
    anatomy: Anatomy
    white_matter: WhiteMatter
    vessels: tuple[Tube, ...]
    pieces: tuple[Tube, ...]
    chronic: tuple[Blob, ...]
    mimics: tuple[Blob, ...] = ()
    lesions: tuple[Lesion, ...] = ()
    n_ever: int = 0
    contrast: float = 1.0

    def seen(self) -> tuple[Lesion, ...]:
        """The lesions as they look in the scan, marked by the rater or not."""
        return tuple(lesion.seen(self.contrast) for lesion in self.lesions)


def patient_before(plan: Plan, rng: np.random.Generator, room: Room) -> Stage:
    """A patient before the first session."""
    anatomy = Anatomy.drawn(rng)
    white_matter = WhiteMatter(anatomy, rng)
    vessels, pieces = long_vessels(rng, anatomy), short_vessels(rng, anatomy)
    chronic = white_matter.placed(chronic_lesions(rng), rng, gap_mm=room.gap_mm)
    return Stage(plan, anatomy, white_matter, tuple(vessels), tuple(pieces), chronic)


def first_stage(before: Stage, rng: np.random.Generator, room: Room) -> Stage:
    """The first session."""
    lesions = before.white_matter.placed(gad_lesions(rng, before.plan.n_first), rng, gap_mm=room.gap_mm)
    alike = before.white_matter.placed(mimics(rng), rng, gap_mm=room.gap_mm, beside=lesions)
    return replace(_with_new(before, lesions, rng), mimics=alike, contrast=_factor(rng, _CONTRAST_VARIES))


def next_stage(before: Stage, rng: np.random.Generator, room: Room) -> Stage:
    """The session after another."""
    fates = [(lesion, vanishes(before.plan, rng)) for lesion in before.lesions]
    old = tuple(replace(one, blob=changed(one.blob, before.plan, rng)) for one, is_gone in fates if not is_gone)
    stage = replace(
        before,
        vessels=_varied(before.vessels, rng),
        pieces=_varied(_turned_over(before.pieces, short_vessels(rng, before.anatomy), _PIECES_CHANGE, rng), rng),
        chronic=before.chronic + tuple(aged(one.blob, rng) for one, is_gone in fates if is_gone),
        lesions=old,
        contrast=_factor(rng, _CONTRAST_VARIES),
    )
    # Where a lesion was a session ago, none is new.
    taken = [*(one.blob for one in before.lesions), *before.mimics]
    stage = _with_new(stage, _placed_new(stage, taken, rng, room), rng)
    return replace(stage, mimics=_next_mimics(stage, rng, room))


def _with_new(stage: Stage, blobs: Sequence[Blob], rng: np.random.Generator) -> Stage:
    """With lesions that were not there before."""
    new = tuple(Lesion(stage.n_ever + i, blob, float(rng.random())) for i, blob in enumerate(blobs, start=1))
    return replace(stage, lesions=stage.lesions + new, n_ever=stage.n_ever + len(new))


def _placed_new(stage: Stage, taken: list[Blob], rng: np.random.Generator, room: Room) -> list[Blob]:
    """New lesions: most of them apart from all others, some beside an old one."""
    hosts = [one.blob for one in stage.lesions]
    blobs = new_lesions(stage.plan, rng)
    is_beside = rng.random(len(blobs)) < _BESIDE
    placed: list[Blob] = []
    for blob, beside in zip(blobs, is_beside, strict=True):
        others = [*taken, *hosts, *placed]
        found = _placed_beside(stage, blob, others, rng, room) if beside and hosts else None
        placed += [found] if found else stage.white_matter.placed([blob], rng, gap_mm=room.gap_mm, beside=others)
    return placed


def _placed_beside(stage: Stage, blob: Blob, others: list[Blob], rng: np.random.Generator, room: Room) -> Blob | None:
    """A new lesion beside one of the old ones, if it fits there."""
    host = stage.lesions[int(rng.integers(len(stage.lesions)))].blob
    between_mm = float(rng.uniform(*_BETWEEN_MM))
    apart_from = [other for other in others if not np.array_equal(other.centre_mm, host.centre_mm)]
    return stage.white_matter.placed_beside(blob, host, rng, between_mm=between_mm, room=room, others=apart_from)


def _next_mimics(stage: Stage, rng: np.random.Generator, room: Room) -> tuple[Blob, ...]:
    lesions = [one.blob for one in stage.lesions]
    placed = stage.white_matter.placed(mimics(rng), rng, gap_mm=room.gap_mm, beside=[*lesions, *stage.mimics])
    return _varied(_turned_over(stage.mimics, placed, _MIMICS_CHANGE, rng), rng)


def _turned_over(
    old: Sequence[Shining], others: Sequence[Shining], share: float, rng: np.random.Generator
) -> tuple[Shining, ...]:
    """Without a share of the old ones, and with the same share of others, of which there are as many in the mean."""
    kept = tuple(one for one in old if rng.random() >= share)
    return kept + tuple(one for one in others if rng.random() < share)


def _varied(things: Sequence[Shining], rng: np.random.Generator) -> tuple[Shining, ...]:
    return tuple(replace(one, amplitude=one.amplitude * _factor(rng, _VESSELS_VARY)) for one in things)


def _factor(rng: np.random.Generator, spread: float) -> float:
    return float(np.exp(spread * rng.standard_normal()))
