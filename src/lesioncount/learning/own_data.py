"""A configuration → the pictures of one's own that it names, with masks or only counts, in parts by patient."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lesioncount.errors import CohortError, ConfigError
from lesioncount.learning.config import DataConfig, TrainingConfig
from lesioncount.learning.label_table import Label, LabelTable
from lesioncount.learning.own_scans import OwnScan, OwnScans, lesions_of
from lesioncount.learning.picture_files import PictureFiles, find_pictures
from lesioncount.learning.pictures import Picture, open_picture
from lesioncount.learning.plausible import MOST_COUNTS, MOST_VOXELS
from lesioncount.learning.scans import MANY, ScanSource, TrainingData
from lesioncount.learning.split import SPLITS, split_by_patient

# Above this, an epoch of a few dozen pictures takes minutes on two cores.
_MANY_VOXELS = 1 << 20

# What finds the patient in names as BIDS has them.
_BIDS = r"sub-[A-Za-z0-9]+"


@dataclass(frozen=True, eq=False)
class OwnData(TrainingData):
    """All pictures that a configuration names, their heads, masks and counts looked through.

    Attributes
    ----------
    data : DataConfig
    scans : tuple of OwnScan
    pictures : tuple of Picture
        One for each of them.
    unknown : tuple of Path
        Pictures without a mask or a count: nothing is learned from them, but they can be predicted.
    """

    data: DataConfig
    scans: tuple[OwnScan, ...]
    pictures: tuple[Picture, ...]
    unknown: tuple[Path, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The size that all pictures are brought to: the one asked for, or else the largest along each axis."""
        return self.data.resize or tuple(max(of) for of in zip(*(one.shape for one in self.pictures), strict=True))

    @property
    def has_masks(self) -> bool:
        """Whether some picture has a mask."""
        return any(scan.mask is not None for scan in self.scans)

    @property
    def largest_count(self) -> int:
        """The largest count that is known of a picture."""
        return max(scan.at_least for scan in self.scans)

    def parts(self) -> dict[str, tuple[OwnScan, ...]]:
        """The pictures of the training, validation and test parts: no patient is in two of them."""
        of = split_by_patient(
            [scan.patient for scan in self.scans],
            [scan.split for scan in self.scans],
            [(scan.mask is not None, min(scan.at_least, MOST_COUNTS)) for scan in self.scans],
            shares=self.data.parts,
            seed=self.data.seed,
        )
        return {part: tuple(s for s, name in zip(self.scans, of, strict=True) if name == part) for part in SPLITS}

    def completed(self, config: TrainingConfig) -> TrainingConfig:
        """The configuration with what it leaves to the pictures: their size, their largest count, how to learn."""
        most = config.loss.max_count or min(max(self.largest_count, 1), MOST_COUNTS)
        loss, run = replace(config.loss, max_count=most), config.run
        if not self.has_masks:
            # There is nothing to learn from but counts: from the first epoch on, at full weight, and with candidates
            # made of what is below the threshold, where an untrained network has everything.
            loss = replace(loss, rescue=True, count_weight=1.0, count_growth=0.0)
            run = replace(run, pretrain_epochs=0, epochs=run.pretrain_epochs + run.epochs)
        return replace(config, data=replace(config.data, shape=self.shape), loss=loss, run=run)

    def lists(self, parts: Mapping[str, ScanSource]) -> dict[str, list[Path]]:
        """The files of the scans of each part, of several channels the first."""
        paths = {scan.files.name: scan.files.paths[0] for scan in self.scans}
        found = {part: [paths[of[i].name] for i in range(len(of))] for part, of in parts.items()}
        return found | ({"predict": list(self.unknown)} if self.unknown else {})

    def __str__(self) -> str:
        """What there is to learn from."""
        n, n_patients = len(self.scans), len({scan.patient for scan in self.scans})
        n_masks = sum(scan.mask is not None for scan in self.scans)
        known = "masks" if n_masks == n else f"masks of {n_masks}" if n_masks else "counts alone"
        first, same = self.pictures[0], len({one.shape for one in self.pictures}) == 1
        wide = " × ".join(map(str, self.shape))
        size = f"{first}" if same else f"{first.n_channels} channels of up to {wide}"
        brought = f", brought to {wide}" if self.data.resize else "" if same else ", padded to that size"
        parts = ", ".join(f"{len(scans)} {part}" for part, scans in self.parts().items())
        of = "" if n == n_patients else f" of {n_patients} patients"
        others = (
            f"; {len(self.unknown)} without a count or mask are for prediction: predict.txt" if self.unknown else ""
        )
        return f"{n} pictures{of} ({size}{brought}), learned from {known}: {parts}{others}"

    @property
    def advice(self) -> str:
        """What to think of before a training that would take long; empty if it would not."""
        if math.prod(self.shape) <= _MANY_VOXELS:
            return ""
        half = [max(1, n // 2) for n in self.shape]
        return (
            f"Pictures of {' × '.join(map(str, self.shape))} are learned from as a whole, which takes much time and "
            f"memory. To make them smaller, write in [data], for example: resize = {half}"
        )

    def warning(self, scores: Mapping[str, float], config: TrainingConfig) -> str:
        """That a network counts worse than the same count for all pictures would; empty if it does not.

        RPS is the mean error of a count without doubt, so that both are in lesions. The constant is the median of the
        training part. Heads with classes of their own are not judged.
        """
        most, parts = self.completed(config).loss.max_count, self.parts()
        counts = {part: [min(s.at_least, most) for s in of if s.at_least == s.at_most] for part, of in parts.items()}
        own = scores.get("test_rps", math.nan)
        if config.network.method != "map" or not (counts["train"] and counts["test"]) or math.isnan(own):
            return ""
        constant = int(np.median(counts["train"]))
        error = float(np.mean(np.abs(np.array(counts["test"]) - constant)))
        if own < error:
            return ""
        return (
            f"This network counts no better than the constant {constant} does for all test pictures: RPS {own:.2f} "
            f"against {error:.2f}. Train longer, or add pictures or masks, before you use it."
        )

    def sources(self) -> dict[str, ScanSource]:
        """The scans of each part, read when they are asked for."""
        return {part: OwnScans(self.data, scans, self.shape) for part, scans in self.parts().items()}


def read_own_data(data: DataConfig, /) -> OwnData:
    """Find the pictures, masks and counts of a configuration, and check that they belong together.

    Parameters
    ----------
    data : DataConfig
        With ``images``, and with ``masks``, ``counts`` or both.
    """
    if not data.images:
        raise ConfigError(
            'Expected images in [data], to learn from. Write, for example: images = "pictures", the folder of your '
            "pictures or scans; or begin with a preset, which names other data."
        )
    if not (data.masks or data.counts):
        raise ConfigError(
            'Expected masks or counts in [data], to learn from. Write, for example: counts = "counts.csv", a table '
            'with the columns scan and count, or masks = "masks", a folder of masks with the names of the pictures.'
        )
    masks = _masks(data)
    found = find_pictures([data.images], channels=data.channels, leave_out=[Path(data.masks)] if data.masks else [])
    pictures = tuple(open_picture(files.paths) for files in found)
    _check_alike(data, pictures)
    table = None
    if data.counts:
        table = LabelTable(Path(data.counts), scan_column=data.scan_column, count_column=data.count_column)
        table.check_own_rows([files.name for files in found])
    scans = [_scan(data, files, one, masks, table) for files, one in zip(found, pictures, strict=True)]
    if not any(scans):
        where = " and ".join(filter(None, (data.masks, data.counts)))
        raise CohortError(
            f"{found[0].paths[0]} and all other pictures have neither a mask nor a count in {where}: there is nothing "
            "to learn from."
        )
    unknown = tuple(files.paths[0] for files, scan in zip(found, scans, strict=True) if scan is None)
    known = tuple(one for one, scan in zip(pictures, scans, strict=True) if scan is not None)
    return OwnData(data, tuple(scan for scan in scans if scan is not None), known, unknown)


def _masks(data: DataConfig) -> dict[str, Path]:
    if not data.masks:
        return {}
    found = {files.name: files.paths[0] for files in find_pictures([data.masks])}
    return {
        name.removesuffix(data.mask_suffix): path for name, path in found.items() if name.endswith(data.mask_suffix)
    }


def _check_alike(data: DataConfig, pictures: Sequence[Picture]) -> None:
    first = pictures[0]
    for one in pictures:
        if one.n_channels != first.n_channels or len(one.shape) != len(first.shape):
            raise CohortError(
                f"Expected pictures with the same number of channels and axes, but {one.grid.path} has {one}, and "
                f"{first.grid.path} has {first}."
            )
    if data.resize and len(data.resize) != len(first.shape):
        raise ConfigError(
            f"Expected resize in [data] to have {len(first.shape)} numbers, as pictures have axes, but got "
            f"{list(data.resize)}. Write, for example: resize = {[128] * len(first.shape)}"
        )
    largest = np.max([one.shape for one in pictures], axis=0)
    if not data.resize and int(np.prod(largest, dtype=object)) * first.n_channels > MOST_VOXELS:
        raise ConfigError(
            f"Pictures of different sizes are padded to {' × '.join(map(str, largest))}, which is too large. Bring "
            f"them to one size; in [data], write, for example: resize = {[128] * len(first.shape)}"
        )


def _scan(
    data: DataConfig, files: PictureFiles, picture: Picture, masks: dict[str, Path], table: LabelTable | None
) -> OwnScan | None:
    """What is known of a picture; None if nothing is: then it is one to predict."""
    label = (table.label_of(files.name) if table else None) or Label()
    mask = masks.get(files.name) or masks.get(files.name.rpartition("/")[2])
    low, high = label.at_least, label.at_most
    if mask is not None:
        count = lesions_of(mask, data, picture)[1]
        low, high = _agreed(files.name, label, count) if low is not None else (count, count)
    if low is None or high is None:
        return None
    return OwnScan(files, label.patient or _patient(data, files.name), label.split, mask, low, high)


def _agreed(name: str, label: Label, in_mask: int) -> tuple[int, int]:
    """The count of the table, which knows lesions apart that touch in the mask; but they must not contradict."""
    low, high = label.at_least or 0, MANY if label.at_most is None else label.at_most
    if in_mask > high or (in_mask == 0 and low > 0):
        said = str(low) if low == high else f"{low} to {high}"
        raise CohortError(
            f"{name}: the table says {said} lesions, but the mask has {in_mask}. Correct one of them, or write n/a in "
            "the table: then the mask is counted."
        )
    return low, high


def _patient(data: DataConfig, name: str) -> str:
    """Whose picture it is, by its name: what the pattern finds or, without one, a subject of BIDS or the picture."""
    if not data.patient:
        found = re.search(_BIDS, name)
        return found[0] if found else name
    try:
        found = re.search(data.patient, name)
    except re.error as error:
        raise ConfigError(
            f"Expected patient in [data] to be a regular expression, but got {data.patient!r}: {error}. Write, for "
            "example: patient = 'sub-\\d+'"
        ) from None
    if found is None:
        raise CohortError(f"{name}: the pattern {data.patient!r} (patient in [data]) finds no patient in this name.")
    return found[1] if found.re.groups and found[1] is not None else found[0]
