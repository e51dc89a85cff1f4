"""How good the counts of a run are: the content of ``evaluation.json``, written and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from msgspec import Struct, convert, to_builtins
from numpy.typing import NDArray

from lesioncount.assess.evaluation.compared_methods import ThresholdCurve
from lesioncount.assess.evaluation.lesion_level import MATCH_COLUMNS, LesionLevel
from lesioncount.assess.evaluation.method import EvaluatedMethod
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import to_json, whole_number
from lesioncount.folder.tables import filled_columns, to_tsv
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.scores.agreement import Agreement, Tercile
from lesioncount.trust.scores.bootstrap import CONFIDENCE, N_RESAMPLES
from lesioncount.trust.scores.estimate import Estimate, Number, Numbers
from lesioncount.trust.scores.on_support import NLL_FLOOR
from lesioncount.trust.scores.readers import BetweenReaders
from lesioncount.version import __version__

FORMAT_VERSION = 2


class TruthSource(Struct, frozen=True):
    """Where the truth came from: the path of "masks", or of a table of "counts"."""

    kind: str = "counts"
    path: str = ""


class ScanRow(Numbers, frozen=True, kw_only=True):
    """What was predicted for one scan, and what is true; the columns of ``scans.tsv``.

    Attributes
    ----------
    scan, group : str
    truth, predicted, median : int
        True and most probable count, and the median: the best single number where the error is counted in lesions.
    expected : float
        Expected count.
    interval90_low, interval90_high : int
    p_truth : float
        Probability of the true count.
    rps : float
        In lesions, on the whole support.
    entropy : float
    cc : int
        Connected components above 0.5.
    readers : str
        What several readers have counted, such as "1 2 2"; truth is then their median, and ``p_truth`` and ``rps`` are
        means over them. ``scans.tsv`` has it only where there are several.
    """

    scan: str = ""
    group: str = ""
    truth: int = 0
    predicted: int = 0
    median: int = 0
    expected: Number = math.nan
    interval90_low: int = 0
    interval90_high: int = 0
    p_truth: Number = math.nan
    rps: Number = math.nan
    entropy: Number = math.nan
    cc: int = 0
    readers: str = ""


class Evaluation(Struct, frozen=True, eq=False, kw_only=True):
    """How good the counts of a run are.

    Attributes
    ----------
    results : str
        Folder of the counts.
    truth : TruthSource
    n_scans, n_groups : int
    group_by : str or None
        What scans were grouped by, such as the patient.
    protocol : CountingProtocol
        What was counted as one lesion.
    seed : int
        Of resamples and folds.
    methods : dict of str to EvaluatedMethod
        By key; "raw" is always among them.
    differences : dict of str to dict of str to Estimate
        Paired differences of scores, by "one - other": the first method minus the second.
    agreement : Agreement or None
        Of the method that is judged, with the truth.
    guaranteed : tuple of Tercile
        Of conformal intervals, by thirds of the predicted count; empty where scans have none.
    lesions : LesionLevel or None
        Where there are masks, and maps were read.
    threshold_curve : ThresholdCurve or None
        Where maps were read.
    readers : BetweenReaders or None
        How far counts are from a reader beside how far readers are from each other, where several have read scans.
    notes : tuple of str
        What a reader must know.
    scans : tuple of ScanRow
    bins : int or None
        Counts from here on were scored as one class; None if each count was scored as what it is.
    of : str
        What was counted: "lesions", or "new", "gone" or "persisting" ones.
    n_resamples, confidence, nll_floor, version, format
        What it was made with.
    """

    format: int = FORMAT_VERSION
    version: str = __version__
    results: str = ""
    truth: TruthSource = TruthSource()
    n_scans: int = 0
    n_groups: int = 0
    group_by: str | None = None
    protocol: CountingProtocol = CountingProtocol()
    bins: int | None = None
    of: Counted = "lesions"
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    confidence: float = CONFIDENCE
    nll_floor: float = NLL_FLOOR
    methods: dict[str, EvaluatedMethod]
    differences: dict[str, dict[str, Estimate | None]] = {}
    agreement: Agreement | None = None
    guaranteed: tuple[Tercile, ...] = ()
    lesions: LesionLevel | None = None
    threshold_curve: ThresholdCurve | None = None
    readers: BetweenReaders | None = None
    notes: tuple[str, ...] = ()
    scans: tuple[ScanRow, ...] = ()

    def __post_init__(self) -> None:
        if "raw" not in self.methods:
            raise ValueError("it has no method 'raw'")
        for key, method in self.methods.items():
            vars(method)["key"] = key

    @property
    def ours(self) -> EvaluatedMethod:
        """The method that is judged: the calibrated counts if there are any, else the raw ones."""
        return self.methods.get("calibrated", self.methods["raw"])

    @property
    def mean_truth(self) -> float:
        """True lesions per scan; of several readers, their mean."""
        if self.readers is None:
            return sum(scan.truth for scan in self.scans) / len(self.scans)
        return sum(scan.expected for scan in self.scans) / len(self.scans) - self.ours.score("bias").value

    @property
    def can_judge(self) -> bool:
        """Whether there are scans enough for a verdict."""
        return self.n_groups >= FEWEST_TO_JUDGE

    def difference(self, one: EvaluatedMethod, other: EvaluatedMethod, score: str) -> Estimate | None:
        """The paired difference of a score, one minus other; None if it was not computed."""
        pairs = ((one, other), (other, one))
        there, back = (self.differences.get(f"{a.key} - {b.key}", {}).get(score) or Estimate() for a, b in pairs)
        found = there if there.is_defined else -back
        return found if found.is_defined else None

    def score_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of ``scores.tsv``."""
        for method in self.methods.values():
            for name in method.scores:
                yield {"method": method.name, "score": name, **to_builtins(method.score(name))}

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``evaluation.json`` has them."""
        plain: dict[str, Any] = to_builtins(self, enc_hook=np.ndarray.tolist)
        if self.readers is None:  # what evaluations of one reader, or of an earlier version, do not have
            for part in (plain, *plain["scans"]):
                del part["readers"]
        for name in () if self.lesions is None else ("readers", "by_size"):
            if not getattr(self.lesions, name):
                del plain["lesions"][name]
        if self.lesions is not None and not self.lesions.f1_above_half.is_defined:
            del plain["lesions"]["f1_above_half"]
        return plain

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """From what `to_dict` gave, read back from a file; ValueError if something is not what it should be."""
        if not isinstance(content, dict) or content.get("format") != FORMAT_VERSION:
            raise ValueError(f'expected an object with "format": {FORMAT_VERSION}')
        return convert(content, cls, dec_hook=_array_of)


def _array_of(kind: Any, value: Any) -> NDArray[Any]:
    """The array of this type that a file has as lists; the null of what is unknown becomes NaN."""
    (dtype,) = get_args(get_args(kind)[1])
    return np.array(value, dtype=dtype)


_NAME, _TABLES, _MATCHES = "evaluation.json", ("scores.tsv", "scans.tsv"), "lesion_matches.tsv"


def check_folder(folder: OutputFolder, *, overwrite: bool) -> None:
    """Raise if an evaluation would replace another one unasked, or a file that is not ours."""
    if folder.is_ours(_NAME) and not overwrite:
        raise MapFileError(f"{folder.path} already holds an evaluation. Choose another folder, or pass --overwrite.")
    folder.check((_NAME, *_TABLES, _MATCHES, "evaluation.html"))


def write_evaluation(
    evaluation: Evaluation, folder: OutputFolder, /, *, matches: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Write an evaluation into a folder, which is made if it is not there; with the rows of `match_rows`, if any."""
    scores, scans = _TABLES
    with folder.alone(listed_in=_NAME):
        folder.write_text(scores, to_tsv(("method", "score", "estimate", "low", "high"), evaluation.score_rows()))
        columns = ScanRow.__struct_fields__ if evaluation.readers else ScanRow.__struct_fields__[:-1]
        rows = ({name: getattr(row, name) for name in columns} for row in evaluation.scans)
        folder.write_text(scans, to_tsv(columns, rows))
        if matches:
            columns = filled_columns(MATCH_COLUMNS, matches, optional=("reader",))
            full = ({name: row.get(name) for name in columns} for row in matches)
            folder.write_text(_MATCHES, to_tsv(columns, full))
        folder.write_text(_NAME, to_json(evaluation.to_dict() | {"files": folder.listed()}))


def read_evaluation(folder: Path) -> Evaluation:
    """Read the evaluation that ``lesioncount evaluate`` has left in a folder."""
    try:
        return Evaluation.from_dict(_parsed((folder / _NAME).read_text("utf-8")))
    except OSError:
        reason = "is not there or cannot be read"
    except (ValueError, RecursionError) as error:
        reason = f"is not what this version reads ({error})"
    raise MapFileError(
        f"Expected an evaluation in {folder}, but its {_NAME} {reason}. Evaluate first: "
        f"lesioncount evaluate RESULTS --truth MASKS -o {folder}"
    )


def _parsed(text: str) -> Any:
    # Other programs may have written an undefined score as NaN or 1e999, neither of which is a number of JSON.
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=whole_number)


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


# A bias of less than this share of the lesions is not what a reader must know first.
_NOTABLE = 0.1

# Scans, or groups of them, that can bear a verdict. The rule: the fewest of which a bootstrap interval that should hold
# a mean in 95 % does so in 90 %, for normal numbers. From two that err alike, it never holds 0.
FEWEST_TO_JUDGE = 10


def systematically_off(evaluation: Evaluation) -> str | None:
    """In words, if the interval of the bias excludes 0 and the bias is more than 10 % of the lesions; else None."""
    bias, relative = evaluation.ours.score("bias"), evaluation.ours.score("relative_bias")
    if not evaluation.can_judge:
        return None
    if not bias.has_interval or bias.low <= 0 <= bias.high or not abs(relative.value) > _NOTABLE:
        return None
    is_low = bias.value < 0
    true = evaluation.mean_truth * len(evaluation.scans)
    expected = sum(scan.expected for scan in evaluation.scans)
    ends = sorted((abs(relative.low), abs(relative.high)))
    return (
        f"The counts are systematically too {'low' if is_low else 'high'}: {expected:.0f} lesions are expected, but "
        f"there are {true:.0f}. That is {100 * abs(relative.value):.0f} % too {'few' if is_low else 'many'} (95 % "
        f"interval {100 * ends[0]:.0f} to {100 * ends[1]:.0f} %), or {abs(bias.value):.3g} lesions per scan."
    )
