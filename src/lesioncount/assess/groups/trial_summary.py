"""What is known of the groups of a trial: the content of ``summary.json``, and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.groups.group_row import GroupRow, RatioRow
from lesioncount.assess.groups.grouping import Grouped
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import to_json
from lesioncount.folder.tables import to_tsv
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.scores.bootstrap import CONFIDENCE
from lesioncount.version import __version__

FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class TrialSummary:
    """What is known of groups of patients.

    Attributes
    ----------
    results : str
        Folder of the counts.
    by : tuple of str
        Columns that make the groups.
    exposure : str or None
        Column of what rates are per; None if they are per scan.
    protocol : CountingProtocol
        What was counted as one lesion.
    is_calibrated : bool
        Whether counts were corrected by a calibration.
    seed : int
        Of the imputations.
    groups : tuple of GroupRow
        The reference first.
    ratios : tuple of RatioRow
        Of each other group to the reference.
    grouped : Grouped
        The scans, each in its group.
    imputations : array of int, shape (imputations, scans)
        Counts that may be the true ones.
    notes : tuple of str
        What a reader must know.
    of : {"lesions", "new", "gone", "persisting"}
        What was counted. Of changes, what is called a scan below is a pair of them.
    confidence, version
        What it was made with.
    """

    results: str
    by: tuple[str, ...]
    exposure: str | None
    protocol: CountingProtocol
    is_calibrated: bool
    seed: int
    groups: tuple[GroupRow, ...]
    ratios: tuple[RatioRow, ...]
    grouped: Grouped
    imputations: NDArray[np.int64]
    notes: tuple[str, ...] = ()
    of: Counted = "lesions"
    confidence: float = CONFIDENCE
    version: str = __version__

    @property
    def reference(self) -> GroupRow:
        """The group that others are divided by."""
        return self.groups[0]

    @property
    def lesions(self) -> str:
        """What was counted, in words."""
        return "lesions" if self.of == "lesions" else f"{self.of} lesions"

    @property
    def unit(self) -> str:
        """What each count is of, in a word."""
        return "scan" if self.of == "lesions" else "pair"

    @property
    def has_several_scans(self) -> bool:
        """Whether a patient has several scans: means per scan and per patient then differ."""
        return any(group.n_patients < group.n_scans for group in self.groups)

    def group_rows(self) -> list[dict[str, Any]]:
        """The rows of ``groups.tsv``."""
        return [group.to_dict(self.by) for group in self.groups]

    def ratio_rows(self) -> list[dict[str, Any]]:
        """The rows of ``ratios.tsv``."""
        return [ratio.to_dict(self.by) for ratio in self.ratios]

    def imputation_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of ``imputations.tsv``: all scans of the first imputation, then those of the second, and so on."""
        scans = [self._scan(place) for place in range(len(self.grouped.subjects))]
        for number, counts in enumerate(self.imputations.tolist(), start=1):
            for scan, count in zip(scans, counts, strict=True):
                yield {"imputation": number, **scan, "count": count}

    def _scan(self, place: int) -> dict[str, Any]:
        of, patient = self.grouped.subjects[place], self.grouped.patients[place]
        level = self.grouped.levels[self.grouped.group[place]]
        exposure = None if self.grouped.exposure is None else float(self.grouped.exposure[place])
        whose = {"scan": of.name, "participant_id": patient}
        return {**whose, **dict(zip(self.by, level, strict=True)), "exposure": exposure}

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``summary.json`` has them."""
        return {
            "format": FORMAT_VERSION,
            "version": self.version,
            "results": self.results,
            "of": self.of,
            "participants": None if self.grouped.table is None else str(self.grouped.table),
            "by": list(self.by),
            "reference": list(self.reference.level),
            "exposure": self.exposure,
            "protocol": self.protocol.to_dict(),
            "is_calibrated": self.is_calibrated,
            "n_scans": len(self.grouped.subjects),
            "n_patients": len(set(self.grouped.patients)),
            "n_imputations": len(self.imputations),
            "seed": self.seed,
            "confidence": self.confidence,
            "groups": self.group_rows(),
            "ratios": self.ratio_rows(),
            "notes": list(self.notes),
        }


_NAME, _TABLES = "summary.json", ("groups.tsv", "ratios.tsv", "imputations.tsv")


def check_folder(folder: OutputFolder, *, overwrite: bool) -> None:
    """Raise if a summary would replace another one unasked, or a file that is not ours."""
    if folder.is_ours(_NAME) and not overwrite:
        raise MapFileError(f"{folder.path} already holds a summary. Choose another folder, or pass --overwrite.")
    folder.check((_NAME, *_TABLES, "summary.html"))


def write_summary(summary: TrialSummary, folder: OutputFolder) -> None:
    """Write a summary into a folder, which is made if it is not there."""
    groups, ratios, imputations = _TABLES
    rows = summary.group_rows()
    columns = ["imputation", "scan", "participant_id", *summary.by, "count"]
    columns += [] if summary.exposure is None else ["exposure"]
    with folder.alone(listed_in=_NAME):
        folder.write_text(groups, to_tsv(rows[0], rows))
        folder.write_text(ratios, to_tsv((*summary.by, *RatioRow().to_dict(())), summary.ratio_rows()))
        folder.write_text(imputations, to_tsv(columns, summary.imputation_rows()))
        folder.write_text(_NAME, to_json(summary.to_dict() | {"files": folder.listed()}))
