"""How scans are counted: what a run is given, and what is recorded of it with every scan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from lesioncount.errors import CalibrationError
from lesioncount.folder.plain import in_one_line, present, typed
from lesioncount.protocol import CountingProtocol
from lesioncount.questions import Question
from lesioncount.results.region_settings import CountedRegions, RegionSettings
from lesioncount.results.scan_numbers import CONFIDENCE
from lesioncount.trust.calibration import Calibration

if TYPE_CHECKING:
    from lesioncount.trust.fitting import CalibrationFit


# What is written beside the records, and changes nothing in what they say: for each setting, what in `outputs/` writes
# it. Those that only write a map as a whole come first: of a large volume they fail before anything is written.
OUTPUTS = {
    "save_existence": "label_maps:ExistenceMap",
    "bids": "bids:Bids",
    "dicom": "dicom:Dicom",
    "save_labels": "label_maps:LabelMaps",
    "save_colours": "colours:Colours",
}


@dataclass(frozen=True)
class Reading:
    """How the voxels of a file are read: which channel and level, on what scale, and whether they are logits."""

    channel: int | None = None
    scale: float | None = None
    logits: bool = False
    level: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As options of `open_map`."""
        plain = {"channel": self.channel, "scale": self.scale, "logits": self.logits}
        return plain if self.level is None else plain | {"level": self.level}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From plain values among others; ValueError or KeyError if they are none."""
        names = [one.name for one in fields(cls) if one.name != "level" or "level" in content]
        return typed({name: content[name] for name in names}, cls)


@dataclass(frozen=True)
class DicomOutput:
    """How results are written as DICOM.

    Attributes
    ----------
    kind : {"labelmap", "binary"}
        Of the segmentation of candidates. Older viewers know only the second.
    series : Path, optional
        Folder of the images that a map was made from; or with a folder of images for each map, in the same place or
        called as it is; or a pattern such as ``dicom/{participant}/{session}``. Not needed for maps that are DICOM
        themselves.
    """

    kind: Literal["labelmap", "binary"] = "labelmap"
    series: Path | None = None


@dataclass(frozen=True)
class CountedWith:
    """What is recorded of the settings: all that a count depends on beside the map and the mask.

    Attributes
    ----------
    protocol : CountingProtocol
    reading : Reading
    save_labels, conformal, bids, save_existence, save_colours : bool
    calibration : Calibration or None
        What counts were corrected with.
    fingerprint : str or None
        Of the calibration with its evidence.
    dicom : str or None
        Kind of the DICOM segmentation that was written.
    regions : CountedRegions or None
        Names of regions and distances to them, where it was counted by region.
    questions : tuple of str
        What was asked.
    """

    protocol: CountingProtocol = field(default_factory=CountingProtocol)
    reading: Reading = field(default_factory=Reading)
    save_labels: bool = False
    conformal: bool = False
    calibration: Calibration | None = None
    fingerprint: str | None = None
    bids: bool = False
    save_existence: bool = False
    save_colours: bool = False
    dicom: str | None = None
    regions: CountedRegions | None = None
    questions: tuple[str, ...] = ()

    def counts_as(self, other: CountedWith) -> bool:
        """Whether counts are the same with other settings, which may write more or less beside them."""
        return self is other or all(
            getattr(self, one.name) == getattr(other, one.name) for one in fields(self) if one.name not in OUTPUTS
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        applied = None if self.calibration is None else self.calibration.to_dict() | {"fingerprint": self.fingerprint}
        return {
            "protocol": self.protocol.to_dict(),
            **self.reading.to_dict(),
            "save_labels": self.save_labels,
            "calibration": applied,
            "conformal": self.conformal,
            "bids": self.bids,
            "save_existence": self.save_existence,
            "save_colours": self.save_colours,
            "dicom": self.dicom,
            **({} if self.regions is None else {"regions": asdict(self.regions)}),
            **present({"questions": self.questions}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From plain values; ValueError, KeyError or TypeError if they are none."""
        return cls._from_text(in_one_line(content))

    @classmethod
    @lru_cache(maxsize=8)  # all records of a run have the same
    def _from_text(cls, text: str) -> Self:
        content = json.loads(text)
        from lesioncount.trust.fitting.evidence import (
            read_calibration,
        )  # not at the top: for those who read results back

        applied = typed(content.get("calibration"), dict[str, Any] | None) or {}
        return cls(
            CountingProtocol.from_dict(typed(content["protocol"], dict[str, Any])),
            Reading.from_dict(content),
            typed(content.get("save_labels", False), bool),
            typed(content.get("conformal", False), bool),
            read_calibration({name: value for name, value in applied.items() if name != "fingerprint"})
            if applied
            else None,
            typed(applied.get("fingerprint"), str | None),
            typed(content.get("bids", False), bool),
            typed(content.get("save_existence", False), bool),
            typed(content.get("save_colours", False), bool),
            typed(content.get("dicom"), str | None),
            typed(content.get("regions"), CountedRegions | None),
            typed(content.get("questions", ()), tuple[str, ...]),
        )


@dataclass(frozen=True)
class Settings:
    """How scans are counted.

    Attributes
    ----------
    protocol : CountingProtocol
        What counts as one lesion.
    channel, scale, logits, level
        As in `open_map`.
    save_labels : bool
        Write the candidates as a label map.
    save_existence : bool
        Write a map in which each candidate has its existence, calibrated where there is a calibration.
    save_colours : bool
        Write colour tables of the label map for ITK-SNAP, 3D Slicer and FSLeyes.
    dicom : DicomOutput, optional
        Write the candidates as a DICOM segmentation, and the count as a DICOM report.
    calibration : CalibrationFit, optional
        Corrects counts, beside what the maps say.
    conformal : bool
        Add its guaranteed intervals.
    bids : bool
        Write the candidates as a BIDS derivative, too.
    regions : RegionSettings, optional
        Names of regions and distances to them, for scans that have a label map of regions.
    questions : tuple of Question
        What is asked of each scan: about the count, and about regions.
    """

    protocol: CountingProtocol = field(default_factory=CountingProtocol)
    channel: int | None = None
    scale: float | None = None
    logits: bool = False
    save_labels: bool = False
    calibration: CalibrationFit | None = None
    conformal: bool = False
    bids: bool = False
    save_existence: bool = False
    save_colours: bool = False
    dicom: DicomOutput | None = None
    regions: RegionSettings | None = None
    questions: tuple[Question, ...] = ()
    level: int | None = None

    outputs: ClassVar[Mapping[str, str]] = OUTPUTS

    @cached_property
    def recorded(self) -> CountedWith:
        """What is recorded of them."""
        fit = self.calibration
        return CountedWith(
            self.protocol,
            Reading(self.channel, self.scale, self.logits, self.level),
            self.save_labels,
            self.conformal,
            None if fit is None else fit.calibration,
            None if fit is None else fit.fingerprint,
            self.bids,
            self.save_existence,
            self.save_colours,
            None if self.dicom is None else self.dicom.kind,
            None if self.regions is None else self.regions.recorded,
            question_texts(self.questions),
        )

    def check(self, *, members: bool) -> None:
        """Raise unless what is asked for can be done: a calibration of this protocol, its intervals."""
        fit = self.calibration
        if fit is not None:
            fit.calibration.check(self.protocol)
        if not self.conformal:
            return
        if fit is None or fit.conformal is None:
            raise CalibrationError(
                "Guaranteed intervals need a calibration that was fitted on scans with known truth (lesioncount "
                "calibrate, not with --positive-weight), and --calibration FILE."
            )
        fit.conformal.conformal.check(CONFIDENCE)
        if members:
            raise CalibrationError(
                "Guaranteed intervals hold for maps of one network, as they were calibrated, and not for an ensemble. "
                "Leave --interval conformal out, or count one member."
            )


def question_texts(questions: Sequence[Question]) -> tuple[str, ...]:
    """What is recorded of questions."""
    return tuple(str(one) if one.name is None else f"{one.name}: {one}" for one in questions)
