"""A configuration → the scans of its training, validation and test parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

from lesioncount.errors import CohortError, ConfigError
from lesioncount.learning.cohort import SPLITS, Cohort, count_of
from lesioncount.learning.config import DataConfig, TrainingConfig
from lesioncount.learning.folder import read_cohort
from lesioncount.learning.own_data import read_own_data
from lesioncount.learning.scans import MANY, Kept, LearningScan, Memory, Part, ScanSource

# Counts from here on are treated alike when folds are made; nuclei, of which there are hundreds, are all told apart.
_ALIKE = 4


def sources_of(config: TrainingConfig, whole: dict[str, ScanSource] | None = None, /) -> dict[str, ScanSource]:
    """The scans of each part. The training part may be reduced to a share of its scans or of their masks.

    Parameters
    ----------
    config : TrainingConfig
    whole : dict, optional
        All scans of this data, as `whole_parts` returns them, if they have been read before.
    """
    if whole is None:
        whole = whole_parts(config, _maker(config.data.source)(config.data))
    return whole | {"train": _reduced(whole["train"], config.data, config.run.seed)}


def _maker(source: str) -> Callable[[DataConfig], Mapping[str, ScanSource]]:
    """What makes the parts of a source: ours, or one that another package offers under ``lesioncount.sources``."""
    ours = {"files": _files, "folder": _folder}
    if source in ours:
        return ours[source]
    others = entry_points(group="lesioncount.sources")
    if source not in others.names:
        raise ConfigError(
            f"Expected source in [data] to be one of {', '.join([*ours, *sorted(others.names)])}, but got {source!r}. "
            'For pictures of your own, write: images = "pictures". The data of the paper come with the package '
            "lesioncount-reproduction; in a clone of the repository: pip install ./reproduction"
        )
    maker: Callable[[DataConfig], Mapping[str, ScanSource]] = others[source].load()
    return maker


def whole_parts(config: TrainingConfig, parts: Mapping[str, ScanSource]) -> dict[str, ScanSource]:
    """All scans of each part, in the folds that the configuration asks for, and kept in memory as far as it allows."""
    memory = Memory.of_gb(config.run.keep_gb)
    kept: dict[str, ScanSource] = {name: Kept(scans, memory) for name, scans in parts.items()}
    return crossed(kept, config.data) if config.data.folds else kept


def crossed(parts: dict[str, ScanSource], data: DataConfig) -> dict[str, ScanSource]:
    """All scans of a cohort, divided anew: each patient is tested in one fold, and all folds have similar counts.

    There are twice as many pieces as folds. Two of them are for testing and the next one for validation.
    """
    every = _Joined(list(parts.values()))
    rows: dict[str, list[int]] = {}
    most: dict[str, int] = {}
    for row in range(len(every)):
        scan = every[row]
        # Synthetic patients are numbered within each part: the same number in another part is another patient.
        patient = f"{every.part_of(row)} {scan.patient}" if data.source == "synthetic" else scan.patient
        rows.setdefault(patient, []).append(row)
        most[patient] = max(most.get(patient, 0), min(scan.at_least, MANY if data.source == "nuclei" else _ALIKE))
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
    """Several series of scans, one after another."""

    def __init__(self, parts: Sequence[ScanSource]) -> None:
        self._parts = list(parts)
        self._places = [(number, i) for number, part in enumerate(parts) for i in range(len(part))]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> LearningScan:
        part, place = self._places[index]
        return self._parts[part][place]

    def part_of(self, index: int) -> int:
        """Which of the series a scan comes from."""
        return self._places[index][0]


class CohortScans:
    """The scans of a cohort, in the form that a network learns from."""

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


def _folder(data: DataConfig) -> dict[str, ScanSource]:
    cohort = read_cohort(Path(data.path), normalize=data.normalize)
    return {part: CohortScans(cohort.split(part)) for part in SPLITS}


def _files(data: DataConfig) -> dict[str, ScanSource]:
    return read_own_data(data).sources()


def _reduced(scans: ScanSource, data: DataConfig, seed: int) -> ScanSource:
    """A share of the patients, and masks for a share of their scans."""
    if data.share == 1 and data.mask_share == 1:
        return scans
    for name, share in (("share", data.share), ("mask_share", data.mask_share)):
        if not 0 <= share <= 1 or (name == "share" and share == 0):
            raise ConfigError(f"Expected {name} to be a share between 0 and 1, but got {share}.")
    patients = [scans[i].patient for i in range(len(scans))]
    rng = np.random.default_rng([seed, 1])
    names = sorted(set(patients))
    kept = set(rng.permutation(names)[: max(1, round(data.share * len(names)))].tolist())
    rows = [i for i, patient in enumerate(patients) if patient in kept]
    masked = set(rng.permutation(rows)[: round(data.mask_share * len(rows))].tolist())
    return Part(scans, rows, [row for row in rows if row not in masked])
