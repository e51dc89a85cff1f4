"""What is in a file, and whether it is a usable probability map."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from lesioncount.checks import checked_protocol
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files import MapSource, open_map
from lesioncount.files.remote_path import to_path
from lesioncount.protocol import CountingProtocol
from lesioncount.runs.file_counts import count_file


@dataclass(frozen=True, eq=False)
class Inspection:
    """The findings; printing them gives a few lines."""

    source: MapSource
    lowest: float
    highest: float
    share_above: float
    threshold: float
    verdict: str
    usable: bool
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        source = self.source
        size = "unknown" if source.spacing_mm is None else " × ".join(f"{mm:g}" for mm in source.spacing_mm) + " mm"
        stored = str(source.dtype)
        if source.scale is not None:
            stored += f", times {source.scale:g} plus {source.offset:g}"
        lines = {
            "file": f"{source.path} ({source.format})",
            "shape": " × ".join(map(str, source.shape))
            + (f", one of {source.n_channels} channels" if source.n_channels > 1 else ""),
            **({} if source.ome is None else source.ome.lines),
            "voxels": size,
            "stored as": stored,
            "values": f"{self.lowest:g} to {self.highest:g}, {self.share_above:.2%} above {self.threshold:g}",
            "verdict": self.verdict,
        }
        told = (*lines.items(), *(("warning", text) for text in self.warnings))
        return "\n".join(f"{name:<10} {text}" for name, text in told)


def inspect_map(
    path: str | os.PathLike[str],
    /,
    *,
    channel: int | None = None,
    level: int | None = None,
    protocol: CountingProtocol | str = "paper",
) -> Inspection:
    """Look through a file, and try to count it as it is."""
    try:
        return _inspected(path, {"channel": channel, "level": level}, checked_protocol(protocol))
    except MemoryError:
        raise MapFileError(
            f"{to_path(path)}: there is not enough memory to look through it. Use a machine with more, or store it as "
            ".nii.gz or zarr, which are read piece by piece."
        ) from None


def _inspected(path: str | os.PathLike[str], which: dict[str, int | None], protocol: CountingProtocol) -> Inspection:
    source = open_map(path, channel=which["channel"], level=which["level"])
    low, high, above = np.inf, -np.inf, 0
    for piece in source.pieces():
        values = source.to_values(piece).astype(np.float64)
        finite = values[np.isfinite(values)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        above += int(np.count_nonzero(finite > protocol.threshold))
    share = above / math.prod(source.shape)
    try:
        count = count_file(path, channel=which["channel"], level=which["level"], protocol=protocol)
    except LesionCountError as error:
        return Inspection(source, low, high, share, protocol.threshold, f"cannot be counted: {error}", usable=False)
    n = len(count.result.candidates)
    verdict = "can be counted, but think twice" if count.warnings else "a usable probability map"
    verdict += f": {n} candidate{'' if n == 1 else 's'}, {count.result.distribution.mean():.3g} expected"
    return Inspection(source, low, high, share, protocol.threshold, verdict, usable=True, warnings=count.warnings)
