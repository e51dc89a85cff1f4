"""What is in a file, and whether it is a usable probability map."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from lesioncount.checks import checked_protocol
from lesioncount.errors import ChannelError, LesionCountError, MapFileError
from lesioncount.files import MapSource, open_map
from lesioncount.files.remote_path import to_path
from lesioncount.protocol import CountingProtocol
from lesioncount.runs.file_counts import count_file

# Channels that are described, of however many.
_MOST_CHANNELS = 20


@dataclass(frozen=True, eq=False)
class Inspection:
    """The findings; printing them gives a few lines.

    Attributes
    ----------
    channels : tuple of str
        What each channel holds, if there are several and none was chosen; the other numbers are of the first.
    """

    source: MapSource
    lowest: float
    highest: float
    share_above: float
    threshold: float
    verdict: str
    usable: bool
    warnings: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()

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
            **(
                {}
                if self.channels
                else {"values": _values(self.lowest, self.highest, self.share_above, self.threshold)}
            ),
            **{f"channel {number}": text for number, text in enumerate(self.channels)},
            "verdict": self.verdict,
        }
        told = (*lines.items(), *(("warning", text) for text in self.warnings))
        return "\n".join(f"{name:<10} {text}" for name, text in told)


def _values(low: float, high: float, share_above: float, threshold: float) -> str:
    return f"{low:g} to {high:g}, {share_above:.2%} above {threshold:g}"


def inspect_map(
    path: str | os.PathLike[str],
    /,
    *,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    level: int | None = None,
    protocol: CountingProtocol | str = "paper",
) -> Inspection:
    """Look through a file, and try to count it as it is.

    Parameters
    ----------
    path : path
        Any file or address that `open_map` reads.
    channel, scale, logits, level
        As in `open_map`. Of several channels each is described if none is chosen.
    protocol : CountingProtocol or str, default "paper"
    """
    how = {"scale": scale, "logits": logits, "level": level}
    try:
        return _inspected(path, channel, how, checked_protocol(protocol))
    except ChannelError as error:
        if channel is not None:
            raise
        return _channels(path, how, checked_protocol(protocol).threshold, error)
    except MemoryError:
        raise MapFileError(
            f"{to_path(path)}: there is not enough memory to look through it. Use a machine with more, or store it as "
            ".nii.gz or zarr, which are read piece by piece."
        ) from None


def _inspected(
    path: str | os.PathLike[str], channel: int | None, how: dict[str, Any], protocol: CountingProtocol
) -> Inspection:
    source = open_map(path, channel=channel, **how)
    found = (source, *_range_of(source, protocol.threshold), protocol.threshold)
    try:
        count = count_file(path, channel=channel, **how, protocol=protocol)
    except LesionCountError as error:
        return Inspection(*found, f"cannot be counted: {error}", usable=False)
    n = len(count.result.candidates)
    verdict = "can be counted, but think twice" if count.warnings else "a usable probability map"
    verdict += f": {n} candidate{'' if n == 1 else 's'}, {count.result.distribution.mean():.3g} expected"
    return Inspection(*found, verdict, usable=True, warnings=count.warnings)


def _channels(path: str | os.PathLike[str], how: dict[str, Any], threshold: float, error: ChannelError) -> Inspection:
    """What the channels of a file hold, none of which was chosen."""
    first = open_map(path, channel=0, **how)
    sources = (open_map(path, channel=one, **how) for one in range(min(first.n_channels, _MOST_CHANNELS)))
    held = tuple(_values(*_range_of(source, threshold), threshold) for source in sources)
    return Inspection(first, 0, 0, 0, threshold, f"cannot be counted: {error}", usable=False, channels=held)


def _range_of(source: MapSource, threshold: float) -> tuple[float, float, float]:
    """The lowest and the highest value of a map, and the share above the threshold."""
    low, high, above = np.inf, -np.inf, 0
    for piece in source.pieces():
        values = (source.to_probabilities(piece) if source.logits else source.to_values(piece)).astype(np.float64)
        finite = values[np.isfinite(values)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        above += int(np.count_nonzero(finite > threshold))
    return low, high, above / math.prod(source.shape)
