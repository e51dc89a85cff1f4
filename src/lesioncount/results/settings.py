"""How scans are counted and compared: what a run is given."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import structs

from lesioncount.changes.coupling import DEFAULT_COUPLING, STRONGEST_COUPLING
from lesioncount.distributions.count_distribution import is_between
from lesioncount.errors import CalibrationError, MapError
from lesioncount.folder.plain import in_one_line
from lesioncount.protocol import CountingProtocol
from lesioncount.questions import Question
from lesioncount.questions.over_time import asked_over_time
from lesioncount.results.recorded import KINDS, Recorded, reading_of
from lesioncount.results.region_settings import RegionSettings
from lesioncount.results.scan_numbers import CONFIDENCE
from lesioncount.trust.candidate_table import Counted

if TYPE_CHECKING:
    from lesioncount.trust.calibration import Calibration
    from lesioncount.trust.fitting import CalibrationFit
    from lesioncount.trust.fitting.lists import ListRule

# No lesion moves farther, and the look-ups of a ball grow with its volume.
_FARTHEST_MM = 50.0


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
class MapSettings:
    """What counting and comparing have in common.

    Attributes
    ----------
    protocol : CountingProtocol
        What counts as one lesion.
    channel, scale, logits
        As in `open_map`.
    save_labels : bool
        Write the candidates as label maps.
    conformal : bool
        Add the guaranteed intervals of calibrations.
    questions : tuple of Question
        What is asked.
    """

    protocol: CountingProtocol = None  # type: ignore[assignment]  # from `__post_init__` on there is one
    channel: int | None = None
    scale: float | None = None
    logits: bool = None  # type: ignore[assignment]  # as of the protocol
    save_labels: bool = field(default=False, kw_only=True)
    conformal: bool = field(default=False, kw_only=True)
    questions: tuple[Question, ...] = field(default=(), kw_only=True)

    def _adopt(self, *fits: CalibrationFit | None) -> None:
        """Take what is not said from calibrations, which know what they were fitted on."""
        known = [fit for fit in fits if fit is not None]
        protocol = next((fit.known_protocol for fit in known if fit.known_protocol is not None), None)
        reading = next((fit.reading for fit in known if fit.reading is not None), {})
        default = {"protocol": CountingProtocol(), "logits": False}
        for name, value in {**default, **reading, **({"protocol": protocol} if protocol else {})}.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    @property
    def reading(self) -> dict[str, Any]:
        """How the voxels of a file are read, as options of `open_map`."""
        return reading_of(self)

    def _recorded(self, fits: Sequence[CalibrationFit], **own: Any) -> Recorded:
        """What is recorded of them."""
        sure = {fit.calibration.counted: fit.conformal for fit in fits if self.conformal and fit.conformal is not None}
        shared = ("channel", "scale", "logits", "conformal", "save_labels")
        return Recorded(
            self.protocol.to_dict(),
            **{name: getattr(self, name) for name in shared},
            proven={kind: one.conformal.proven(CONFIDENCE) for kind, one in sure.items()},
            questions=tuple(str(one) if one.name is None else f"{one.name}: {one}" for one in self.questions),
            **own,
        )

    def _check_fits(self, fits: Mapping[Counted, CalibrationFit], no_intervals: str) -> None:
        """Raise unless calibrations are of this protocol, and have the guaranteed intervals that are asked for."""
        for counted, fit in fits.items():
            fit.calibration.check(self.protocol, counted)
            fit.check_reading(self.reading)
            if self.conformal and fit.conformal is not None:
                fit.conformal.conformal.check(CONFIDENCE)
        if self.conformal and not any(fit.conformal for fit in fits.values()):
            raise CalibrationError(no_intervals)


def counts_fingerprint(readings: Mapping[str, Sequence[int]]) -> str:
    """A short name that changes with any count of any reader."""
    counts = {name: of[0] if len(of) == 1 else list(of) for name, of in sorted(readings.items())}
    return hashlib.sha256(in_one_line(counts).encode()).hexdigest()[:12]


@dataclass(frozen=True, eq=False)
class KnownFolds:
    """What corrects scans whose count is known: calibrations that do not know it.

    Attributes
    ----------
    fingerprint : str
        A short name that changes with any known count.
    fit : CalibrationFit
        Of all known counts, for all other scans.
    folds : tuple of Calibration
        Each fitted without the scans of one fold.
    fold_of : mapping of str to int
        The fold of each scan with a known count.
    """

    fingerprint: str
    fit: CalibrationFit
    folds: tuple[Calibration, ...]
    fold_of: Mapping[str, int]


@dataclass(frozen=True)
class Settings(MapSettings):
    """How scans are counted.

    Attributes
    ----------
    protocol : CountingProtocol
        What counts as one lesion. Default: that of the calibration, or of the paper.
    channel, scale, logits, level
        As in `open_map`. Default: as the maps were read that the calibration was fitted on.
    save_labels : bool
        Write the candidates as a label map.
    save_existence : bool
        Write a map in which each candidate has its existence, calibrated where there is a calibration.
    save_colours : bool
        Write colour tables of the label map for ITK-SNAP, 3D Slicer and FSLeyes.
    dicom : DicomOutput, optional
        Write the candidates as a DICOM segmentation, and the count as a DICOM report.
    calibration : CalibrationFit, Calibration or path, optional
        Corrects counts, beside what the maps say.
    conformal : bool
        Add its guaranteed intervals.
    bids : bool
        Write the candidates as a BIDS derivative, too.
    regions : RegionSettings, optional
        Names of regions and distances to them, for scans that have a label map of regions.
    questions : tuple of Question
        What is asked of each scan: about the count, and about regions.
    known : KnownFolds, optional
        Where the calibration was learned from known counts of some of the scans: what corrects these.
    listed : ListRule, optional
        The promise of a list of candidates, which the calibration must be able to give.
    reads : mapping of str to tuple of int, optional
        What readers have counted, by the names of scans: then it is also given what another one would count.
    spacing_mm : tuple of float, optional
        Of tables of detections in pixels: the size of a pixel along each axis.
    """

    calibration: CalibrationFit | None = None
    bids: bool = False
    save_existence: bool = False
    save_colours: bool = False
    dicom: DicomOutput | None = None
    regions: RegionSettings | None = None
    level: int | None = None
    spacing_mm: tuple[float, ...] | None = None
    known: KnownFolds | None = field(default=None, kw_only=True)
    listed: ListRule | None = field(default=None, kw_only=True)
    reads: Mapping[str, tuple[int, ...]] = field(default_factory=dict, kw_only=True)

    # For each setting of an optional output, what in `outputs/` writes it. Those that only write a map as a whole come
    # first: of a large volume they fail before anything is written.
    outputs: ClassVar[Mapping[str, str]] = {
        "save_existence": "label_maps:ExistenceMap",
        "bids": "bids:Bids",
        "dicom": "dicom:Dicom",
        "save_labels": "label_maps:LabelMaps",
        "save_colours": "colours:Colours",
    }

    def __post_init__(self) -> None:
        if self.calibration is not None:
            from lesioncount.trust.fitting.evidence import as_fit  # not at the top: only some have a calibration

            object.__setattr__(self, "calibration", as_fit(self.calibration))
        self._adopt(self.calibration)

    @cached_property
    def recorded(self) -> Recorded:
        """What is recorded of them."""
        fit = self.calibration
        return self._recorded(
            () if fit is None else (fit,),
            level=self.level,
            plain_calibration=None if fit is None else fit.calibration.to_dict() | {"fingerprint": fit.fingerprint},
            bids=self.bids,
            save_existence=self.save_existence,
            save_colours=self.save_colours,
            dicom=None if self.dicom is None else self.dicom.kind,
            regions=None if self.regions is None else self.regions.recorded,
            known=None if self.known is None else self.known.fingerprint,
            spacing_mm=self.spacing_mm,
            listed=None if self.listed is None else str(self.listed),
            reads=counts_fingerprint(self.reads) if self.reads else None,
            pool=None if fit is None or fit.pool is None else fit.pool.to_dict(),
        )

    @cached_property
    def list_threshold(self) -> float | None:
        """From which probability on a candidate is on the list; None if none was asked for."""
        if self.listed is None:
            return None
        if self.calibration is None or self.calibration.lists is None:
            truth = "--reviews" if self.protocol.has_detections else "--truth MASKS"
            raise CalibrationError(
                "A list with a promise needs a calibration that knows true lesions, not only their number as --known "
                f"does, also of masks: lesioncount calibrate RESULTS {truth} --fit-from lesions, and --calibration "
                "FILE."
            )
        return self.calibration.lists.threshold(self.listed)

    def of_scan(self, name: str) -> Settings:
        """Those of one scan: if its count is known, with a calibration that does not know it."""
        fold = None if self.known is None else self.known.fold_of.get(name)
        return self if fold is None else self._of_folds[fold]

    @cached_property
    def _of_folds(self) -> tuple[Settings, ...]:
        """The settings of each fold, without intervals: these hold for scans that nobody has counted."""
        made: list[Settings] = []
        if self.known is None:
            return ()
        for one in self.known.folds:
            fit = self.known.fit
            settings = replace(self, calibration=replace(fit, calibration=one, held_out=None, conformal=None))
            plain = one.to_dict() | {"fingerprint": self.recorded.fingerprint()}
            settings.__dict__["recorded"] = structs.replace(self.recorded, plain_calibration=plain)
            made.append(settings)
        return tuple(made)

    def check(self, *, members: bool) -> None:
        """Raise unless what is asked for can be done: a calibration of this protocol, its intervals."""
        self._check_fits(
            {} if self.calibration is None else {"lesions": self.calibration},
            "Guaranteed intervals need a calibration that was fitted on scans with known truth (lesioncount "
            "calibrate, not with --positive-weight), and --calibration FILE.",
        )
        if self.reads and (self.calibration is None or self.calibration.pool is None):
            raise CalibrationError(
                "What another reader would count (--reads) needs a calibration that was fitted to several readers of "
                "20 scans or more: lesioncount calibrate with a table of columns scan, reader1, reader2, then count "
                "--calibration FILE."
            )
        if self.list_threshold is not None and members:
            raise CalibrationError("A list with a promise is of one network, as it was calibrated, not of an ensemble.")
        if self.conformal and members:
            raise CalibrationError(
                "Guaranteed intervals hold for maps of one network, as they were calibrated, and not for an ensemble. "
                "Leave --interval conformal out, or count one member."
            )


@dataclass(frozen=True)
class ChangeSettings(MapSettings):
    """How maps are compared.

    Attributes
    ----------
    protocol : CountingProtocol
        What counts as one lesion. Default: that of the calibrations, or of the paper.
    channel, scale, logits
        As in `open_map`. Default: as the maps were read that calibrations were fitted on.
    tolerance_mm : float, optional
        How far around the voxels of a candidate the other map is searched. Default: 2 mm, or a voxel if that is larger.
    coupling : float
        How the doubt about a place belongs together at both times, see `lesioncount.changes.coupling.only_now`.
    calibrations : tuple of CalibrationFit
        At most one for each of new, gone and persisting lesions.
    conformal : bool
        Add the guaranteed intervals of the calibrations.
    save_labels : bool
        Write the candidates of each session as a label map, with the same number for the same lesion.
    questions : tuple of Question
        What is asked of each pair of sessions: about new, gone and persisting lesions, and the count of the later one.
    """

    tolerance_mm: float | None = None
    coupling: float = DEFAULT_COUPLING
    calibrations: tuple[CalibrationFit, ...] = ()

    outputs: ClassVar[Mapping[str, str]] = {"save_labels": "label_maps:CourseLabels"}  # as in `Settings`

    def __post_init__(self) -> None:
        self._adopt(*self.calibrations)

    def fit(self, kind: Counted) -> CalibrationFit | None:
        """The calibration of what is counted."""
        return next((fit for fit in self.calibrations if fit.calibration.counted == kind), None)

    @cached_property
    def recorded(self) -> Recorded:
        """What is recorded of them."""
        return self._recorded(
            self.calibrations,
            tolerance_mm=self.tolerance_mm,
            coupling=self.coupling,
            plain_calibrations={fit.calibration.counted: fit.calibration.to_dict() for fit in self.calibrations},
            fingerprints={fit.calibration.counted: fit.fingerprint for fit in self.calibrations},
        )

    def check(self) -> None:
        """Raise unless what is asked for can be done."""
        if not is_between(self.coupling, 0, STRONGEST_COUPLING):
            raise MapError(f"Expected a coupling from 0 to {STRONGEST_COUPLING:g}, but got {self.coupling!r}.")
        if self.tolerance_mm is not None and not is_between(self.tolerance_mm, 0, _FARTHEST_MM):
            raise MapError(f"Expected a tolerance from 0 to {_FARTHEST_MM:g} mm, but got {self.tolerance_mm!r}.")
        for question in self.questions:
            asked_over_time(question)
        kinds = [fit.calibration.counted for fit in self.calibrations]
        for kind in kinds:
            if kind not in KINDS:
                raise CalibrationError(
                    "The calibration is for the lesions of single scans, not for changes. Compare without it, then fit "
                    "one: lesioncount calibrate OUT --truth MASKS -o FILE."
                )
            if kinds.count(kind) > 1:
                raise CalibrationError(f"There are two calibrations for {kind} lesions. Pass one.")
        self._check_fits(
            dict(zip(kinds, self.calibrations, strict=True)),
            "Guaranteed intervals need a calibration that was fitted on pairs with known truth, and --calibration.",
        )
