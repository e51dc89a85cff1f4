"""A configuration → the scans of its training, validation and test parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lesioncount.cohorts import SPLITS, Cohort, GadCohort
from lesioncount.cohorts.folder import read_cohort
from lesioncount.cohorts.leaf import Leaf, read_leaves
from lesioncount.cohorts.scan import count_of
from lesioncount.errors import CohortError, ConfigError
from lesioncount.training.config import DataConfig, TrainingConfig
from lesioncount.training.scans import MANY, Kept, LearningScan, Part, ScanSource

# Counts from here on are held alike when folds are made.
_ALIKE = 4


def sources_of(config: TrainingConfig, parts: dict[str, ScanSource] | None = None, /) -> dict[str, ScanSource]:
    """Scans of each part, of which the training part may be cut down, or do without some of its masks.

    Parameters
    ----------
    config : TrainingConfig
    parts : dict, optional
        All scans of these data where they are there already, so that they are not made or read again.
    """
    parts = dict(_whole_parts(config.data) if parts is None else parts)
    parts["train"] = _reduced(parts["train"], config.data, config.run.seed)
    return parts


def _whole_parts(data: DataConfig) -> dict[str, ScanSource]:
    makers = {"synthetic": _synthetic, "folder": _folder, "leaf": _leaf}
    if data.source not in makers:
        raise ConfigError(f"Expected source to be one of {', '.join(makers)}, but got {data.source!r}.")
    parts: dict[str, ScanSource] = {name: Kept(scans) for name, scans in makers[data.source](data).items()}
    return crossed(parts, data) if data.folds else parts


def crossed(parts: dict[str, ScanSource], data: DataConfig) -> dict[str, ScanSource]:
    """All scans of a cohort, parted anew: each patient is tested in one fold, and counts are alike in all of them.

    Of twice as many pieces as there are folds, two are for testing, the next one for validation.
    """
    every = _Joined(list(parts.values()))
    rows: dict[str, list[int]] = {}
    most: dict[str, int] = {}
    for row in range(len(every)):
        scan = every[row]
        # Synthetic patients are numbered anew in each part: the same number is another patient there.
        patient = f"{every.part_of(row)} {scan.patient}" if data.source == "synthetic" else scan.patient
        rows.setdefault(patient, []).append(row)
        most[patient] = max(most.get(patient, 0), min(scan.at_least, _ALIKE))
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
    return {part: Part(every, sorted(row for i in of for row in pieces[i])) for part, of in chosen.items()}


class _Joined:
    """Several series of scans, one after the other."""

    def __init__(self, parts: Sequence[ScanSource]) -> None:
        self._parts = list(parts)
        self._places = [(number, i) for number, part in enumerate(parts) for i in range(len(part))]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> LearningScan:
        part, place = self._places[index]
        return self._parts[part][place]

    def part_of(self, index: int) -> int:
        """Which of the series a scan is from."""
        return self._places[index][0]


class CohortScans:
    """The scans of a cohort, as something to learn from."""

    def __init__(self, cohort: Cohort) -> None:
        self._cohort = cohort

    def __len__(self) -> int:
        return len(self._cohort)

    def __getitem__(self, index: int) -> LearningScan:
        scan = self._cohort[index]
        count = scan.count
        if count is None and scan.lesions is not None:
            count = count_of(scan.lesions)
        low = count if count is not None else scan.at_least
        high = count if count is not None else scan.at_most
        if scan.lesions is None and low is None and high is None:
            raise CohortError(f"{scan.name} has neither a mask nor a count: there is nothing to learn from it.")
        return LearningScan(
            scan.name,
            scan.patient,
            scan.images,
            None if scan.lesions is None else scan.lesions.astype(np.uint8),
            0 if low is None else low,
            MANY if high is None else high,
        )


def synthetic_cohorts(data: DataConfig) -> dict[str, GadCohort]:
    """The synthetic cohort of each part."""
    if len(data.patients) != len(SPLITS) or len(data.shape) != 3:
        raise ConfigError(
            "Expected patients of training, validation and test, and three axes, but got "
            f"{list(data.patients)} and {list(data.shape)}."
        )
    # Each part is a cohort of its own, so that none changes with the size of another.
    return {
        part: GadCohort(n, seed=data.seed * len(SPLITS) + i, shape=data.shape)
        for i, (part, n) in enumerate(zip(SPLITS, data.patients, strict=True))
    }


def _synthetic(data: DataConfig) -> dict[str, ScanSource]:
    return {part: CohortScans(cohort) for part, cohort in synthetic_cohorts(data).items()}


def _folder(data: DataConfig) -> dict[str, ScanSource]:
    cohort = read_cohort(Path(data.path))
    return {part: CohortScans(cohort.split(part)) for part in ("train", "val", "test")}


class LeafScans:
    """Photographs of leaves, each a patient of its own."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves

    def __len__(self) -> int:
        return len(self._leaves)

    def __getitem__(self, index: int) -> LearningScan:
        leaf = self._leaves[index]
        return LearningScan(leaf.name, leaf.name, leaf.images, leaf.lesions.astype(np.uint8), leaf.count, leaf.count)


def _leaf(data: DataConfig) -> dict[str, ScanSource]:
    if len(data.shape) != 2:
        raise ConfigError(f"Expected height and width of photographs, but got {list(data.shape)}.")
    leaves = read_leaves(Path(data.path), size=(data.shape[0], data.shape[1]))
    return {part: LeafScans(leaves.split(part)) for part in ("train", "val", "test")}


def _reduced(scans: ScanSource, data: DataConfig, seed: int) -> ScanSource:
    """A share of the patients, and a share of the scans with masks."""
    if data.share == 1 and data.mask_share == 1:
        return scans
    for name, share in (("share", data.share), ("mask_share", data.mask_share)):
        if not 0 <= share <= 1 or (name == "share" and share == 0):
            raise ConfigError(f"Expected {name} to be a share, but got {share}.")
    patients = [scans[i].patient for i in range(len(scans))]
    rng = np.random.default_rng([seed, 1])
    names = sorted(set(patients))
    kept = set(rng.permutation(names)[: max(1, round(data.share * len(names)))].tolist())
    rows = [i for i, patient in enumerate(patients) if patient in kept]
    masked = set(rng.permutation(rows)[: round(data.mask_share * len(rows))].tolist())
    return Part(scans, rows, [row for row in rows if row not in masked])
