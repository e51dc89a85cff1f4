"""An evaluation → ``evaluation.json``, ``scores.tsv`` and ``scans.tsv``, and back."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.files.atomic import write_text
from lesioncount.runs.evaluation.evaluation import FORMAT_VERSION, Evaluation
from lesioncount.runs.evaluation.scan_row import ScanRow
from lesioncount.runs.plain import to_json, whole_number
from lesioncount.runs.tables import to_tsv

_NAME = "evaluation.json"


def is_evaluated(folder: Path) -> bool:
    """Whether a folder holds an evaluation."""
    return (folder / _NAME).exists()


def write_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Write an evaluation into a folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MapFileError(f"The folder {folder} cannot be used: {error.strerror}.") from None
    write_text(folder / _NAME, to_json(evaluation.to_dict()))
    columns = ("method", "score", "estimate", "low", "high")
    write_text(folder / "scores.tsv", to_tsv(columns, evaluation.score_rows()))
    scans = (scan.to_dict() for scan in evaluation.scans)
    write_text(folder / "scans.tsv", to_tsv((field.name for field in fields(ScanRow)), scans))


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
