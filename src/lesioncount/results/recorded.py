"""What is recorded of the settings with every scan, and decides whether a run may go on."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import Any, get_args

import msgspec
from msgspec import Struct

from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.distributions.count_distribution import is_between
from lesioncount.folder.plain import in_one_line
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.within import all_within
from lesioncount.results.region_settings import CountedRegions
from lesioncount.results.scan_numbers import CONFIDENCE
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.conformal import promise_of

# What is counted of two maps, in the order of tables.
KINDS: tuple[Counted, ...] = tuple(kind for kind in get_args(Counted) if kind != "lesions")

# What is written beside the records, and changes nothing in what they say.
OUTPUTS = frozenset({"save_labels", "save_existence", "save_colours", "bids", "dicom"})

# What decides nothing by itself: outputs, and what follows from a calibration.
FREE = OUTPUTS | {"proven", "pool"}

# What files have of the settings of counts and of comparisons, in their order; and what is left out if there is none.
_OF_COUNTS = (
    "protocol", "channel", "scale", "logits", "level", "save_labels", "calibration", "conformal", "proven", "bids",
    "save_existence", "save_colours", "dicom", "regions", "questions", "known", "spacing_mm",
    "listed", "reads", "pool",
)  # fmt: skip
_OF_CHANGES = (
    "protocol", "channel", "scale", "logits", "level", "tolerance_mm", "coupling", "calibrations", "fingerprints",
    "conformal", "proven", "save_labels", "questions",
)  # fmt: skip
_IF_ANY = frozenset({"level", "regions", "questions", "known", "proven", "spacing_mm", "listed", "reads", "pool"})


class Recorded(Struct, frozen=True, dict=True):
    """What is recorded of the settings: all that results depend on beside maps and masks.

    Attributes
    ----------
    plain_protocol, plain_calibration, plain_calibrations
        As files have them: ``protocol`` and ``calibrations`` give their types.
    channel, scale, logits, level
        How the voxels of a file are read.
    save_labels, conformal, bids, save_existence, save_colours : bool
    dicom : str or None
        Kind of the DICOM segmentation that was written.
    regions : CountedRegions or None
        Names of regions and distances to them, where it was counted by region.
    questions : tuple of str
        What was asked.
    known : str or None
        Fingerprint of the known counts that the calibration was learned from in this run.
    spacing_mm : tuple of float, or None
        Of tables of detections in pixels: the size that pixels were said to have.
    listed : str or None
        The promise of a list of candidates, such as ``missed<=10%``.
    reads : str or None
        Fingerprint of what readers have counted, where it was asked what another one would count.
    pool : dict or None
        A `ReaderPool`, where the calibration has one.
    tolerance_mm : float or None
        Of comparisons. None: 2 mm, or the size of a voxel if that is larger.
    coupling : float or None
        Of comparisons, and only of these.
    fingerprints : dict of str to str
        Of comparisons: those of the calibrations with their evidence.
    proven : dict of str to float
        Share of true counts that guaranteed intervals are proven to hold, by what they are of. It follows from the
        calibration; records of an earlier version lack it.
    """

    plain_protocol: dict[str, Any] = msgspec.field(default_factory=dict, name="protocol")
    channel: int | None = None
    scale: float | None = None
    logits: bool = False
    level: int | None = None
    save_labels: bool = False
    plain_calibration: dict[str, Any] | None = msgspec.field(default=None, name="calibration")
    conformal: bool = False
    bids: bool = False
    save_existence: bool = False
    save_colours: bool = False
    dicom: str | None = None
    regions: CountedRegions | None = None
    questions: tuple[str, ...] = ()
    known: str | None = None
    spacing_mm: tuple[float, ...] | None = None
    listed: str | None = None
    reads: str | None = None
    pool: dict[str, Any] | None = None
    tolerance_mm: float | None = None
    coupling: float | None = None
    plain_calibrations: dict[Counted, dict[str, Any]] | None = msgspec.field(default=None, name="calibrations")
    fingerprints: dict[str, str] = msgspec.field(default_factory=dict)
    proven: dict[Counted, float] = msgspec.field(default_factory=dict)

    @cached_property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return CountingProtocol.from_dict(self.plain_protocol)

    @cached_property
    def calibrations(self) -> Mapping[Counted, Calibration]:
        """What numbers were corrected with, by what they are of."""
        of_changes = {kind: Calibration.from_dict(values) for kind, values in (self.plain_calibrations or {}).items()}
        if self.plain_calibration is None:
            return of_changes
        values = {name: value for name, value in self.plain_calibration.items() if name != "fingerprint"}
        return {**of_changes, "lesions": Calibration.from_dict(values)}

    @property
    def calibration(self) -> Calibration | None:
        """What counts were corrected with."""
        return self.calibrations.get("lesions")

    @property
    def caveat(self) -> str:
        """What all that is made with a calibration from no counted scan must say; empty if it is none."""
        return "" if self.calibration is None else self.calibration.caveat

    def fingerprint(self, counted: Counted = "lesions") -> str | None:
        """That of a calibration with its evidence."""
        of_counts = self.plain_calibration or {}
        return of_counts.get("fingerprint") if counted == "lesions" else self.fingerprints.get(counted)

    @property
    def reading(self) -> dict[str, Any]:
        """How the voxels of a file are read, as options of `open_map`."""
        return reading_of(self)

    @property
    def is_of_changes(self) -> bool:
        """Whether maps were compared, and not counted."""
        return self.coupling is not None or self.plain_calibrations is not None

    @property
    def promises(self) -> dict[Counted, str]:
        """What is proven of guaranteed intervals, in words, by what they are of."""
        words = {"what": "pairs" if self.is_of_changes else "scans", "those": "those of the calibration"}
        return {kind: promise_of(proven, CONFIDENCE, **words) for kind, proven in self.proven.items()}

    @property
    def list_promise(self) -> str:
        """What a list of candidates promises, in a sentence; empty if none was asked for."""
        if self.listed is None:
            return ""
        from lesioncount.trust.fitting.lists import ListRule  # not at the top: fits are for some runs only

        return ListRule.parse(self.listed).promise

    def as_it_is(self, counted: Counted = "lesions") -> Calibration:
        """What corrects nothing, and has the coupling of the run."""
        return Calibration(counted=counted, coupling=DEFAULT_COUPLING if self.coupling is None else self.coupling)

    def counts_as(self, other: Recorded) -> bool:
        """Whether results are the same with other settings, which may write more or less beside them."""
        return self == other or self._decisive == other._decisive

    @cached_property
    def _decisive(self) -> tuple[Any, ...]:
        plain = [getattr(self, name) for name in self.__struct_fields__ if name not in FREE and "plain" not in name]
        return (*plain, self.protocol, self.calibrations, self.fingerprint())

    @cached_property
    def plain(self) -> dict[str, Any]:
        """As plain values, as files have them."""
        values = json.loads(in_one_line(self))  # as they come back from a file
        keys = _OF_CHANGES if self.is_of_changes else _OF_COUNTS
        return {key: values[key] for key in keys if key not in _IF_ANY or values[key] not in (None, [], {})}

    def check(self) -> None:
        """Raise ValueError, TypeError or OverflowError unless they make sense."""
        if not self.plain_protocol:
            raise ValueError("expected what counts as one lesion")
        if not all(is_between(one, 0, 1) for one in self.proven.values()):
            raise ValueError("expected what is proven as a share")
        all_within(() if self.regions is None else self.regions.within)
        _ = self.protocol, self.calibrations


_RECENT: deque[Recorded] = deque(maxlen=8)


def held_once(settings: Recorded) -> Recorded:
    """The first of equal settings that were read, checked once: all records of a run have the same."""
    for known in _RECENT:
        if known == settings:
            return known
    settings.check()
    _RECENT.append(settings)
    return settings


def reading_of(settings: Any) -> dict[str, Any]:
    """How the voxels of a file are read, as options of `open_map`."""
    level = getattr(settings, "level", None)
    plain = {name: getattr(settings, name) for name in ("channel", "scale", "logits")}
    return plain if level is None else plain | {"level": level}
