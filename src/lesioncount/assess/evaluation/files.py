"""An evaluation → ``evaluation.json``, ``scores.tsv`` and ``scans.tsv``, and back."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path

from lesioncount.assess.evaluation.evaluation import FORMAT_VERSION, Evaluation
from lesioncount.assess.evaluation.scan_row import ScanRow
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import to_json, whole_number
from lesioncount.folder.tables import to_tsv

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
