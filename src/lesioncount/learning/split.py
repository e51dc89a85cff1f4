"""Patients → training, validation and test, or folds: the same for the same names and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from lesioncount.errors import CohortError
from lesioncount.learning.config_sections import DataConfig
from lesioncount.learning.scans import Part, ScanSource

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def split_by_patient(
    patients: Sequence[str], given: Sequence[str], kinds: Sequence[Any], /, *, shares: Sequence[float], seed: int
) -> list[str]:
    """The part of each scan: as given, or drawn so that parts have their shares of the patients of every kind.

    Parameters
    ----------
    patients, given : sequence of str
        Of each scan. Parts must be given for all scans or for none.
    kinds : sequence
        By which parts should be alike, such as the count; of a patient with several scans, the highest one.
    shares : sequence of float
        Of training, validation and test; they need not add up to 1.
    seed : int

    Examples
    --------
    >>> split_by_patient(list("abcde"), [""] * 5, [0, 0, 1, 1, 2], shares=(0.6, 0.2, 0.2), seed=1)
    ['train', 'val', 'train', 'test', 'train']
    """
    if any(given):
        _check_given(patients, given)
        return list(given)
    highest: dict[str, Any] = {}
    for patient, kind in zip(patients, kinds, strict=True):
        highest[patient] = max(highest.get(patient, kind), kind)
    if len(highest) < len(SPLITS):
        raise CohortError(
            f"Expected at least {len(SPLITS)} patients, for training, validation and test, but there "
            f"{'is' if len(highest) == 1 else 'are'} {len(highest)}. Which pictures belong together is said by the "
            "column patient of the table, or by patient in [data]."
        )
    shuffled = np.random.default_rng([seed, len(SPLITS)]).permutation(sorted(highest)).tolist()
    part_of = _dealt(sorted(shuffled, key=highest.__getitem__), np.asarray(shares, dtype=np.float64))
    return [part_of[patient] for patient in patients]


def _check_given(patients: Sequence[str], given: Sequence[str]) -> None:
    if not all(given):
        raise CohortError("The table gives a split to some pictures but not to all. Give it to all, or to none.")
    parts: dict[str, str] = {}
    for patient, part in zip(patients, given, strict=True):
        if parts.setdefault(patient, part) != part:
            raise CohortError(f"The patient {patient!r} is in two parts, {parts[patient]} and {part}.")
    missing = [part for part in SPLITS if part not in given]
    if missing:
        raise CohortError(f"The column split puts no picture into {' or '.join(missing)}.")


def _dealt(patients: Sequence[str], shares: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, str]:
    """Each patient in turn goes to the part that is furthest behind its share; each part gets one at least."""
    shares, n, dealt = shares / shares.sum(), len(patients), np.zeros(len(shares))
    part_of: dict[str, str] = {}
    for place, patient in enumerate(patients):
        behind = shares * (place + 1) - dealt
        empty = np.flatnonzero(dealt == 0)
        chosen = int(empty[0]) if len(empty) == n - place else int(np.argmax(behind))
        dealt[chosen] += 1
        part_of[patient] = SPLITS[chosen]
    return part_of


def crossed(parts: Mapping[str, ScanSource], data: DataConfig, *, alike: int) -> dict[str, ScanSource]:
    """All scans, divided anew: each patient is tested in one fold, and all folds have similar counts.

    There are twice as many pieces as folds. Two of them are for testing and the next one for validation.

    Parameters
    ----------
    parts : mapping of str to ScanSource
    data : DataConfig
        With ``folds``, ``fold`` and ``seed``.
    alike : int
        Counts from here on are taken to be similar.
    """
    places = [(part, i) for part in parts.values() for i in range(len(part))]
    rows: dict[str, list[int]] = {}
    most: dict[str, int] = {}
    for row, (source, place) in enumerate(places):
        scan = source[place]
        rows.setdefault(scan.patient, []).append(row)
        most[scan.patient] = max(most.get(scan.patient, 0), min(scan.at_least, alike))
    shuffled = np.random.default_rng([data.seed, data.folds]).permutation(sorted(rows)).tolist()
    pieces: list[list[int]] = [[] for _ in range(2 * data.folds)]
    for place, patient in enumerate(sorted(shuffled, key=most.__getitem__)):
        pieces[place % len(pieces)] += rows[patient]
    test, val = (2 * data.fold, 2 * data.fold + 1), (2 * data.fold + 2) % len(pieces)
    chosen = {
        "train": [i for i in range(len(pieces)) if i not in (*test, val)],
        "val": [val],
        "test": list(test),
    }
    return {
        part: Part([places[row] for row in sorted(row for i in of for row in pieces[i])]) for part, of in chosen.items()
    }
