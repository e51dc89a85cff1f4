"""Two files → what has changed between them, in one call."""

from __future__ import annotations

import os
from typing import Unpack

from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.changes.lesion_changes import LesionChanges, changes_between
from lesioncount.checks import defined
from lesioncount.cohort.item import ScanFiles
from lesioncount.files.remote_path import to_path
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.results.course_settings import ChangeSettings
from lesioncount.runs.session_maps import read_maps


def compare_files(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: str | os.PathLike[str] | None = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    tolerance_mm: float | None = None,
    coupling: float = DEFAULT_COUPLING,
    **definition: Unpack[ProtocolFields],
) -> LesionChanges:
    """How many lesions are new, gone and still there between two maps in files.

    Parameters
    ----------
    before, after : path
        Any files that `open_map` reads. A map on another grid of the same space is resampled to that of ``after``.
    protocol, channel, scale, logits, **definition
        As in `count_file`, for both maps.
    mask : path, optional
        On the grid of the map after; only voxels where it is neither 0 nor NaN are looked at.
    tolerance_mm, coupling
        As in `lesioncount.compare`.
    """
    settings = ChangeSettings(
        defined(protocol, definition, compare_files), channel, scale, logits, tolerance_mm, coupling
    )
    settings.check()
    later = None if mask is None else to_path(mask)
    first_path, second_path = to_path(before), to_path(after)
    scans = [ScanFiles(first_path.name, first_path), ScanFiles(second_path.name, second_path, mask=later)]
    maps = read_maps(scans, settings, ("1", "2"))
    first, second = (one.counted for one in maps.sessions)
    return changes_between(first, second, tolerance_mm=tolerance_mm, coupling=coupling)
