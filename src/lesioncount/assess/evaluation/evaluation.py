"""How good the counts of a run are: the content of ``evaluation.json``, written and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from lesioncount.assess.evaluation.curves import ThresholdCurve
from lesioncount.assess.evaluation.lesion_level import LesionLevel
from lesioncount.assess.evaluation.method import EvaluatedMethod
from lesioncount.assess.evaluation.scan_row import ScanRow
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import estimates_of, number_of, to_json, typed, whole_number
from lesioncount.folder.tables import to_tsv
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.scores.agreement import Agreement, Tercile
from lesioncount.trust.scores.bootstrap import CONFIDENCE, N_RESAMPLES
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.proper import NLL_FLOOR
from lesioncount.version import __version__

FORMAT_VERSION = 2

_MINUS = " - "


@dataclass(frozen=True)
class TruthSource:
    """Where the truth came from: the path of "masks", or of a table of "counts"."""

    kind: str
    path: str

    def to_dict(self) -> dict[str, str]:
        """As plain values."""
        return {"kind": self.kind, "path": self.path}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file."""
        return cls(typed(content["kind"], str), typed(content["path"], str))


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
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
    differences : dict of (str, str) to dict of str to Estimate
        Paired differences of scores, the first method minus the second.
    agreement : Agreement or None
        Of the method that is judged, with the truth.
    guaranteed : tuple of Tercile
        Of conformal intervals, by thirds of the predicted count; empty where scans have none.
    lesions : LesionLevel or None
        Where there are masks, and maps were read.
    threshold_curve : ThresholdCurve or None
        Where maps were read.
    notes : tuple of str
        What a reader must know.
    scans : tuple of ScanRow
    bins : int or None
        Counts from here on were scored as one class; None if each count was scored as what it is.
    of : str
        What was counted: "lesions", or "new", "gone" or "persisting" ones.
    n_resamples, confidence, nll_floor, version
        What it was made with.
    """

    results: str
    truth: TruthSource
    n_scans: int
    n_groups: int
    group_by: str | None
    protocol: CountingProtocol
    seed: int
    methods: dict[str, EvaluatedMethod]
    differences: dict[tuple[str, str], dict[str, Estimate]]
    agreement: Agreement | None
    guaranteed: tuple[Tercile, ...]
    lesions: LesionLevel | None
    threshold_curve: ThresholdCurve | None
    notes: tuple[str, ...]
    scans: tuple[ScanRow, ...]
    bins: int | None = None
    of: Counted = "lesions"
    n_resamples: int = N_RESAMPLES
    confidence: float = CONFIDENCE
    nll_floor: float = NLL_FLOOR
    version: str = __version__

    @property
    def ours(self) -> EvaluatedMethod:
        """The method that is judged: the calibrated counts if there are any, else the raw ones."""
        return self.methods.get("calibrated", self.methods["raw"])

    def difference(self, one: EvaluatedMethod, other: EvaluatedMethod, score: str) -> Estimate | None:
        """The paired difference of a score, one minus other; None if it was not computed."""
        there = self.differences.get((one.key, other.key), {}).get(score, Estimate())
        back = self.differences.get((other.key, one.key), {}).get(score, Estimate())
        found = there if there.is_defined else -back
        return found if found.is_defined else None

    def score_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of ``scores.tsv``."""
        for method in self.methods.values():
            for name, score in method.scores.items():
                yield {"method": method.name, "score": name, **score.to_dict()}

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``evaluation.json`` has them."""
        return {
            "format": FORMAT_VERSION,
            "version": self.version,
            "results": self.results,
            "truth": self.truth.to_dict(),
            "n_scans": self.n_scans,
            "n_groups": self.n_groups,
            "group_by": self.group_by,
            "protocol": self.protocol.to_dict(),
            "bins": self.bins,
            "of": self.of,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "confidence": self.confidence,
            "nll_floor": self.nll_floor,
            "methods": {key: method.to_dict() for key, method in self.methods.items()},
            "differences": {
                _MINUS.join(pair): {name: score.to_dict() for name, score in of.items()}
                for pair, of in self.differences.items()
            },
            "agreement": None if self.agreement is None else self.agreement.to_dict(),
            "guaranteed": [third.to_dict() for third in self.guaranteed],
            "lesions": None if self.lesions is None else self.lesions.to_dict(),
            "threshold_curve": None if self.threshold_curve is None else self.threshold_curve.to_dict(),
            "notes": list(self.notes),
            "scans": [scan.to_dict() for scan in self.scans],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file.

        Raises
        ------
        KeyError, TypeError, ValueError, OverflowError
            When something is missing, or is not what it should be.
        """
        methods = {
            key: EvaluatedMethod.from_dict(key, typed(of, dict[str, Any]))
            for key, of in typed(content["methods"], dict[str, Any]).items()
        }
        lesions, curve, group_by = (content.get(name) for name in ("lesions", "threshold_curve", "group_by"))
        agreement, bins = content.get("agreement"), content.get("bins")
        evaluation = cls(
            n_scans=typed(content["n_scans"], int),
            results=typed(content["results"], str),
            truth=TruthSource.from_dict(typed(content["truth"], dict[str, Any])),
            n_groups=typed(content["n_groups"], int),
            group_by=None if group_by is None else typed(group_by, str),
            protocol=CountingProtocol.from_dict(typed(content["protocol"], dict[str, Any])),
            seed=typed(content["seed"], int),
            methods=methods,
            differences={
                _pair(name): estimates_of(of) for name, of in typed(content["differences"], dict[str, Any]).items()
            },
            agreement=None if agreement is None else Agreement.from_dict(typed(agreement, dict[str, Any])),
            guaranteed=tuple(Tercile.from_dict(third) for third in typed(content["guaranteed"], list[dict[str, Any]])),
            lesions=None if lesions is None else LesionLevel.from_dict(typed(lesions, dict[str, Any])),
            threshold_curve=None if curve is None else ThresholdCurve.from_dict(typed(curve, dict[str, Any])),
            notes=tuple(typed(note, str) for note in typed(content["notes"], list[Any])),
            scans=tuple(ScanRow.from_dict(typed(scan, dict[str, Any])) for scan in typed(content["scans"], list[Any])),
            bins=None if bins is None else typed(bins, int),
            of=typed(content.get("of", "lesions"), Counted),
            n_resamples=typed(content["n_resamples"], int),
            confidence=number_of(content["confidence"]),
            nll_floor=number_of(content["nll_floor"]),
            version=typed(content["version"], str),
        )
        if "raw" not in methods:
            raise KeyError("raw")
        return evaluation


def _pair(name: str) -> tuple[str, str]:
    one, _, other = name.partition(_MINUS)
    return one, other


_NAME, _TABLES = "evaluation.json", ("scores.tsv", "scans.tsv")


def check_folder(folder: OutputFolder, *, overwrite: bool) -> None:
    """Raise if an evaluation would replace another one unasked, or a file that is not ours."""
    if folder.is_ours(_NAME) and not overwrite:
        raise MapFileError(f"{folder.path} already holds an evaluation. Choose another folder, or pass --overwrite.")
    folder.check((_NAME, *_TABLES, "evaluation.html"))


def write_evaluation(evaluation: Evaluation, folder: OutputFolder) -> None:
    """Write an evaluation into a folder, which is made if it is not there."""
    scores, scans = _TABLES
    with folder.alone(listed_in=_NAME):
        folder.write_text(scores, to_tsv(("method", "score", "estimate", "low", "high"), evaluation.score_rows()))
        rows = (scan.to_dict() for scan in evaluation.scans)
        folder.write_text(scans, to_tsv((field.name for field in fields(ScanRow)), rows))
        folder.write_text(_NAME, to_json(evaluation.to_dict() | {"files": folder.listed()}))


def read_evaluation(folder: Path) -> Evaluation:
    """Read the evaluation that ``lesioncount evaluate`` has left in a folder."""
    try:
        return _parsed((folder / _NAME).read_text("utf-8"))
    except OSError:
        reason = "is not there or cannot be read"
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        missing = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        reason = f"is not what this version reads ({missing})"
    raise MapFileError(
        f"Expected an evaluation in {folder}, but its {_NAME} {reason}. Evaluate first: "
        f"lesioncount evaluate RESULTS --truth MASKS -o {folder}"
    )


def _parsed(text: str) -> Evaluation:
    # Other programs may have written an undefined score as NaN or 1e999, neither of which is a number of JSON.
    content = json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=whole_number)
    if not isinstance(content, dict) or content.get("format") != FORMAT_VERSION:
        raise TypeError(f'expected an object with "format": {FORMAT_VERSION}')
    return Evaluation.from_dict(content)


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


# A bias of less than this share of the lesions is not what a reader must know first.
_NOTABLE = 0.1


def systematically_off(evaluation: Evaluation) -> str | None:
    """In words, if the interval of the bias excludes 0 and the bias is more than 10 % of the lesions; else None."""
    bias, relative = evaluation.ours.score("bias"), evaluation.ours.score("relative_bias")
    if not bias.has_interval or bias.low <= 0 <= bias.high or not abs(relative.value) > _NOTABLE:
        return None
    is_low = bias.value < 0
    true = sum(scan.truth for scan in evaluation.scans)
    expected = sum(scan.expected for scan in evaluation.scans)
    ends = sorted((abs(relative.low), abs(relative.high)))
    return (
        f"The counts are systematically too {'low' if is_low else 'high'}: {expected:.0f} lesions are expected, but "
        f"there are {true}. That is {100 * abs(relative.value):.0f} % too {'few' if is_low else 'many'} (95 % interval "
        f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} %), or {abs(bias.value):.3g} lesions per scan."
    )
