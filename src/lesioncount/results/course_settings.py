"""How maps are compared: what a run is given, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

from lesioncount.changes.coupling import DEFAULT_COUPLING, STRONGEST_COUPLING
from lesioncount.distributions.count_distribution import is_between
from lesioncount.errors import CalibrationError, MapError
from lesioncount.folder.plain import present, typed
from lesioncount.protocol import CountingProtocol
from lesioncount.questions import Question
from lesioncount.questions.over_time import asked_over_time
from lesioncount.results.scan_numbers import CONFIDENCE
from lesioncount.results.settings import Reading, question_texts
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import Counted

if TYPE_CHECKING:
    from lesioncount.trust.fitting import CalibrationFit

# What is counted of two maps, in the order of tables.
KINDS: tuple[Counted, ...] = tuple(kind for kind in get_args(Counted) if kind != "lesions")

# No lesion moves farther, and the look-ups of a ball grow with its volume.
_FARTHEST_MM = 50.0


@dataclass(frozen=True)
class ComparedWith:
    """What is recorded of the settings: all that a comparison depends on beside maps and masks.

    Attributes
    ----------
    protocol : CountingProtocol
    reading : Reading
    tolerance_mm : float or None
        None: 2 mm, or the size of a voxel if that is larger.
    coupling : float
    calibrations : mapping of str to Calibration
        What numbers of changes were corrected with, by what they are of.
    fingerprints : mapping of str to str
        Of the calibrations with their evidence.
    conformal, save_labels : bool
    questions : tuple of str
        What was asked.
    """

    protocol: CountingProtocol = field(default_factory=CountingProtocol)
    reading: Reading = field(default_factory=Reading)
    tolerance_mm: float | None = None
    coupling: float = DEFAULT_COUPLING
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    conformal: bool = False
    save_labels: bool = False
    questions: tuple[str, ...] = ()

    def as_it_is(self, kind: Counted) -> Calibration:
        """What corrects nothing, and has the coupling of the run."""
        return Calibration(counted=kind, coupling=self.coupling)

    def compares_as(self, other: ComparedWith) -> bool:
        """Whether numbers are the same with other settings, which may write more or less beside them."""
        return replace(self, save_labels=False) == replace(other, save_labels=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "protocol": self.protocol.to_dict(),
            **self.reading.to_dict(),
            "tolerance_mm": self.tolerance_mm,
            "coupling": self.coupling,
            "calibrations": {kind: one.to_dict() for kind, one in self.calibrations.items()},
            "fingerprints": dict(self.fingerprints),
            "conformal": self.conformal,
            "save_labels": self.save_labels,
            **present({"questions": self.questions}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From plain values; ValueError, KeyError, TypeError or one of our errors if they are none."""
        from lesioncount.trust.fitting.evidence import read_calibration  # not at the top: for those who read back

        applied = typed(content.get("calibrations", {}), dict[Counted, dict[str, Any]])
        return cls(
            CountingProtocol.from_dict(typed(content["protocol"], dict[str, Any])),
            typed({name: content[name] for name in ("channel", "scale", "logits")}, Reading),
            typed(content["tolerance_mm"], float | None),
            typed(content["coupling"], float),
            {kind: read_calibration(values) for kind, values in applied.items()},
            typed(content.get("fingerprints", {}), dict[str, str]),
            typed(content.get("conformal", False), bool),
            typed(content.get("save_labels", False), bool),
            typed(content.get("questions", ()), tuple[str, ...]),
        )


@dataclass(frozen=True)
class ChangeSettings:
    """How maps are compared.

    Attributes
    ----------
    protocol : CountingProtocol
        What counts as one lesion.
    channel, scale, logits
        As in `open_map`.
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

    protocol: CountingProtocol = field(default_factory=CountingProtocol)
    channel: int | None = None
    scale: float | None = None
    logits: bool = False
    tolerance_mm: float | None = None
    coupling: float = DEFAULT_COUPLING
    calibrations: tuple[CalibrationFit, ...] = ()
    conformal: bool = False
    save_labels: bool = False
    questions: tuple[Question, ...] = ()

    outputs: ClassVar[Mapping[str, str]] = {"save_labels": "label_maps:CourseLabels"}  # as in `Settings`

    def fit(self, kind: Counted) -> CalibrationFit | None:
        """The calibration of what is counted."""
        return next((fit for fit in self.calibrations if fit.calibration.counted == kind), None)

    @property
    def reading(self) -> Reading:
        """How files are read."""
        return Reading(self.channel, self.scale, self.logits)

    @property
    def recorded(self) -> ComparedWith:
        """What is recorded of them."""
        return ComparedWith(
            self.protocol,
            self.reading,
            self.tolerance_mm,
            self.coupling,
            {fit.calibration.counted: fit.calibration for fit in self.calibrations},
            {fit.calibration.counted: fit.fingerprint for fit in self.calibrations},
            self.conformal,
            self.save_labels,
            question_texts(self.questions),
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
        for kind, fit in zip(kinds, self.calibrations, strict=True):
            if kind not in KINDS:
                raise CalibrationError(
                    "The calibration is for the lesions of single scans, not for changes. Compare without it, then fit "
                    "one: lesioncount calibrate OUT --truth MASKS -o FILE."
                )
            if kinds.count(kind) > 1:
                raise CalibrationError(f"There are two calibrations for {kind} lesions. Pass one.")
            fit.calibration.check(self.protocol, kind)
            if self.conformal and fit.conformal is not None:
                fit.conformal.conformal.check(CONFIDENCE)
        if self.conformal and not any(fit.conformal for fit in self.calibrations):
            raise CalibrationError(
                "Guaranteed intervals need a calibration that was fitted on pairs with known truth, and --calibration."
            )
