"""Counts → the files that people read: one JSON per scan, and two tables for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import Any

import numpy as np

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.files.geometry import to_ras_mm
from lesioncount.runs.count_file import ScanCount

_DISTRIBUTION_COLUMNS = (
    "count_mode", "count_mean", "count_sd", "interval90_low", "interval90_high", "entropy", "p_0", "p_1", "p_2", "p_3",
    "p_4plus",
)  # fmt: skip
CALIBRATED_COLUMNS = (*(f"{name}_calibrated" for name in _DISTRIBUTION_COLUMNS), "calibration")
CONFORMAL_COLUMNS = ("interval90_low_conformal", "interval90_high_conformal")
ENSEMBLE_COLUMNS = ("n_members", "variance_within", "variance_between")
MEMBER_COLUMNS = ("scan", "member", "path", "n_candidates", "cc_count", "total_volume_mm3", *_DISTRIBUTION_COLUMNS)
COUNT_COLUMNS = (
    "scan", "status", "n_candidates", *_DISTRIBUTION_COLUMNS, "cc_count", "total_volume_mm3", "error",
)  # fmt: skip
LESION_COLUMNS = (
    "scan", "label", "existence", "n_voxels", "volume_mm3", "peak_i", "peak_j", "peak_k", "peak_x_mm", "peak_y_mm",
    "peak_z_mm", "centroid_x_mm", "centroid_y_mm", "centroid_z_mm", "bbox", "equivalent_diameter_mm", "variance_share",
)  # fmt: skip


def distribution_columns(distribution: CountDistribution) -> dict[str, Any]:
    """The columns of ``counts.tsv`` that describe a distribution."""
    low, high = distribution.interval(0.9)
    bins = distribution.binned(4)
    return {
        "count_mode": distribution.mode(),
        "count_mean": distribution.mean(),
        "count_sd": distribution.std(),
        "interval90_low": low,
        "interval90_high": high,
        "entropy": distribution.entropy(),
        **dict(zip(("p_0", "p_1", "p_2", "p_3", "p_4plus"), map(float, bins), strict=True)),
    }


def calibrated_columns(distribution: CountDistribution) -> dict[str, Any]:
    """The same columns after calibration, beside the others."""
    return {f"{name}_calibrated": value for name, value in distribution_columns(distribution).items()}


def map_columns(counts: Sequence[ScanCount]) -> dict[str, Any]:
    """The columns of ``counts.tsv`` that describe the candidates; of several members, the middle one of each number."""
    return {
        "n_candidates": median_low(len(count.result.candidates) for count in counts),
        "cc_count": median_low(count.component_count for count in counts),
        "total_volume_mm3": float(np.median([count.result.candidates.volume_mm3.sum() for count in counts])),
    }


def lesion_rows(count: ScanCount) -> list[dict[str, Any]]:
    """The rows of ``lesions.tsv`` of one scan, without its name."""
    candidates, existence = count.result.candidates, count.result.existence
    affine = count.source.affine
    variance = existence * (1 - existence)
    share = variance / variance.sum() if variance.sum() > 0 else np.zeros(len(existence))
    peak, centroid = to_ras_mm(affine, candidates.peak_index), to_ras_mm(affine, candidates.centroid)
    index = candidates.peak_index.tolist()
    n_axes = len(candidates.shape)
    return [
        {
            "label": row + 1,
            "existence": float(existence[row]),
            "n_voxels": int(candidates.n_voxels[row]),
            "volume_mm3": float(candidates.volume_mm3[row]),
            "peak_i": index[row][0],
            "peak_j": index[row][1],
            "peak_k": index[row][2] if n_axes == 3 else None,
            **dict(zip(("peak_x_mm", "peak_y_mm", "peak_z_mm"), peak[row].tolist(), strict=True)),
            **dict(zip(("centroid_x_mm", "centroid_y_mm", "centroid_z_mm"), centroid[row].tolist(), strict=True)),
            "bbox": " ".join(map(str, candidates.bbox[row])),
            "equivalent_diameter_mm": float(candidates.equivalent_diameter_mm[row]),
            "variance_share": float(share[row]),
        }
        for row in range(len(existence))
    ]


def columns_of(
    columns: Iterable[str], rows: Sequence[Mapping[str, Any]], optional: Mapping[str, Iterable[str]]
) -> tuple[str, ...]:
    """Columns that every table has, and after some of them others, where a row fills them."""
    found: list[str] = []
    for column in columns:
        found.append(column)
        found += [name for name in optional.get(column, ()) if any(name in row for row in rows)]
    return tuple(found)


def to_tsv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table as text: tabs between columns, ``n/a`` for what is unknown, as BIDS has it."""
    columns = tuple(columns)
    lines = ["\t".join(columns)]
    lines += ["\t".join(_cell(row.get(column)) for column in columns) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split()) or "n/a"
