"""A count as it is printed: a line, the distribution, the strongest candidates, and the fullest regions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates
from lesioncount.distributions.count_distribution import CountDistribution

# How much is printed: the bins 0, 1, 2, 3, 4+ of the paper, and as many candidates and regions.
_LAST_BIN = 4
_LISTED = 5


def text_of_count(
    headline: str,
    distribution: CountDistribution,
    candidates: Candidates,
    existence: NDArray[np.float64],
    regions: Mapping[str, CountDistribution] | None,
) -> str:
    """A count as a few readable lines; what it says of regions only if there are any."""
    names = [*map(str, range(_LAST_BIN)), f"{_LAST_BIN}+"]
    bins = zip(names, distribution.binned(_LAST_BIN), strict=True)
    lines = [
        headline,
        "P(count)    " + "  ".join(f"{name}: {p:.3f}" for name, p in bins),
        f"from        {candidates}",
    ]
    strongest = np.argsort(-existence, kind="stable")[:_LISTED]
    lines += [_candidate_line(candidates, existence, int(row)) for row in strongest]
    if len(existence) > len(strongest):
        lines.append(f"            … and {len(existence) - len(strongest)} weaker candidates")
    if regions is not None:
        lines.append(f"where       {_fullest(regions)}")
    return "\n".join(lines)


def _candidate_line(candidates: Candidates, existence: NDArray[np.float64], row: int) -> str:
    size = f"{candidates.n_voxels[row]} voxel{'' if candidates.n_voxels[row] == 1 else 's'}"
    if candidates.protocol.has_detections:
        return f"  #{row + 1:<8} exists with probability {existence[row]:.4f}{_of_detection(candidates, row)}"
    if candidates.spacing_mm is not None:
        size += f", {candidates.volume_mm3[row]:.4g} mm³"
    peak = ", ".join(map(str, candidates.peak_index[row]))
    line = f"  #{row + 1:<8} exists with probability {existence[row]:.4f}: {size}, peak at ({peak})"
    height = candidates.saddle_probability[row]
    return f"{line}, saddle of {height:.4f}" if height > 0 else line


def _of_detection(candidates: Candidates, row: int) -> str:
    """How large a detection is and where it lies, as far as that is known."""
    columns = candidates.columns()
    place = [columns[f"{axis}_mm"][row] for axis in "xyz"]
    size = columns["equivalent_diameter_mm"][row]
    known = [f"{size:.4g} mm across"] if np.isfinite(size) else []
    if np.isfinite(place).all():
        known.append(f"at ({', '.join(f'{one:.4g}' for one in place)}) mm")
    elif candidates.peak_index.shape[1]:
        known.append(f"at ({', '.join(map(str, candidates.peak_index[row]))})")
    return f": {', '.join(known)}" if known else ""


def _fullest(regions: Mapping[str, CountDistribution]) -> str:
    expected = {name: count.mean() for name, count in regions.items()}
    fullest = sorted((name for name in expected if expected[name] > 0), key=lambda name: -expected[name])
    words = [f"{name} {expected[name]:.2f}" for name in fullest[:_LISTED]]
    more = f", and {len(fullest) - len(words)} more regions" if len(fullest) > len(words) else ""
    return (", ".join(words) or "in no region") + more
