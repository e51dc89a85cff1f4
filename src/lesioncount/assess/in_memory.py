"""Maps as arrays or files, and their counts → a calibration, or scores: what commands do, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from lesioncount.assess.beside_truth import TruthOptions
from lesioncount.assess.known_counts import BOTH, learn, names_of_scan
from lesioncount.candidates import find_candidates
from lesioncount.checks import checked_protocol
from lesioncount.cohort.scans import Selection
from lesioncount.errors import TruthError, listed
from lesioncount.protocol import CountingProtocol
from lesioncount.results.settings import Settings
from lesioncount.runs.count import Counting
from lesioncount.runs.count_table import records_of
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting.choice import choose
from lesioncount.trust.fitting.evidence import CalibrationFit, CalibrationLike, as_fit
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.scores.bootstrap import score_all
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.predictions import Predictions

Paths: TypeAlias = "str | os.PathLike[str]"

# Files, folders or patterns; or arrays, a map each.
Maps: TypeAlias = "Paths | Sequence[Paths] | Sequence[ArrayLike]"

# A number for each map; by the names of maps; or a table, a folder or a pattern of masks.
Counts: TypeAlias = "Paths | Mapping[str, int] | Sequence[int]"


def calibrate(
    maps: Maps,
    counts: Counts,
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    groups: Sequence[Any] | None = None,
    seed: int = 0,
    jobs: int = 1,
) -> CalibrationFit:
    """Learn from known counts how to correct counts: ``lesioncount calibrate maps/ --known counts.csv``.

    Parameters
    ----------
    maps : path, sequence of paths, or sequence of array_like
        Files, folders and glob patterns; or arrays, one for each scan.
    counts : path, mapping of str to int, or sequence of int
        A table of counts or masks, where maps are files; the count of each map, by the name of its file without ending;
        or as many numbers as there are maps, in their order. Files without a count are left out.
    protocol : CountingProtocol or str, optional
        What counts as one lesion. Regions and peaks are tried, unless it counts peaks.
    channel, scale, logits
        As in `count_file`; arrays take ``logits`` only.
    groups : sequence, optional
        With a number for each map: what belongs together, such as the scans of a patient.
    seed : int, default 0
        Of the folds.
    jobs : int, default 1
        Number of processes that read files.

    Returns
    -------
    CalibrationFit
        For ``count_files(calibration=…)``; ``held_out`` says how much it gains, and ``save`` writes it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> maps, counts = [], []
    >>> for _ in range(30):
    ...     p = rng.uniform(0.2, 0.9, size=6)
    ...     image = np.zeros((3, 19))
    ...     image[1, 1::3] = 1 / (1 + (1 / p - 1) ** 2)  # twice as sure as it should be
    ...     maps.append(image)
    ...     counts.append(int((rng.random(6) < p).sum()))
    >>> fit = calibrate(maps, counts)
    >>> fit.held_out.after["rps"].value < fit.held_out.before["rps"].value
    True
    """
    own = checked_protocol(protocol)
    if isinstance(counts, str | os.PathLike):
        settings = Settings(own, channel, scale, logits)
        return learn(_paths(maps), TruthOptions.known(Path(counts)), settings=settings, seed=seed, jobs=jobs).choice.fit
    peaks = replace(own, candidates="peaks")
    tables, true = _tables(maps, counts, Settings(peaks, channel, scale, logits), jobs)
    truth = KnownTruth.of(tables, true, groups=groups)
    reading = {"channel": channel, "scale": scale, "logits": logits}
    return choose(truth, protocol=own, kinds=("peaks",) if own.has_peaks else BOTH, seed=seed, reading=reading).fit


def evaluate(
    maps: Maps,
    counts: Mapping[str, int] | Sequence[int],
    /,
    *,
    calibration: CalibrationLike | None = None,
    protocol: CountingProtocol | str | None = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool | None = None,
    groups: Sequence[Any] | None = None,
    seed: int = 0,
    jobs: int = 1,
) -> dict[str, dict[str, Estimate]]:
    """Score counts against the truth: error, bias, coverage and others, with intervals.

    Parameters
    ----------
    maps, counts, groups, seed, jobs
        As in `calibrate`; counts are numbers.
    calibration : path, CalibrationFit or Calibration, optional
        Scored, too, as ``calibrated``. Do not judge it by the scans that it was fitted on: ``held_out`` does that.
    protocol, channel, scale, logits
        As in `count_file`. Default: those of the calibration.

    Returns
    -------
    dict of str to dict of str to Estimate
        By method (``raw``, ``calibrated``) and score (``rps``, ``mae``, ``bias``, ``coverage90``, …).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> maps = [rng.choice([0.01, 0.4, 0.9], size=(1, 40)) for _ in range(20)]
    >>> scores = evaluate(maps, [5] * 20)
    >>> sorted(scores), scores["raw"]["mae"].value > 1
    (['raw'], True)
    """
    fit = as_fit(calibration)
    own = None if protocol is None else checked_protocol(protocol)
    settings = Settings(own, channel, scale, logits, calibration=fit)  # type: ignore[arg-type]  # None: as it has it
    settings.check(members=False)
    tables, true = _tables(maps, counts, settings, jobs)
    truth = KnownTruth.of(tables, true, groups=groups)
    used = {"raw": Calibration()} | (
        {} if settings.calibration is None else {"calibrated": settings.calibration.calibration}
    )
    methods = {name: Predictions.of_distributions(truth.distributions(of), truth.counts) for name, of in used.items()}
    scores, _ = score_all(methods, groups=truth.groups, seed=seed)
    return {name: dict(of) for name, of in scores.items()}


def _tables(
    maps: Maps, counts: Mapping[str, int] | Sequence[int], settings: Settings, jobs: int
) -> tuple[list[CandidateTable], list[int]]:
    """The candidates of each map that has a count, and the counts."""
    features = () if settings.calibration is None else settings.calibration.features
    if not _are_paths(maps):
        found = [find_candidates(one, protocol=settings.protocol, logits=settings.logits) for one in maps]  # type: ignore[union-attr, arg-type]
        if isinstance(counts, Mapping) or len(counts) != len(found):
            raise TruthError(f"Expected a count for each of {len(found)} maps, as numbers in their order.")
        return [CandidateTable.of_candidates(one, *features) for one in found], [int(count) for count in counts]
    scans = Selection().find(_paths(maps))
    if isinstance(counts, Mapping):
        known = [(scan, counts[name]) for scan in scans for name in names_of_scan(scan) if name in counts]
        known = list({scan.name: (scan, count) for scan, count in reversed(known)}.values())[::-1]
    elif len(counts) == len(scans):
        known = list(zip(scans, counts, strict=True))
    else:
        raise TruthError(f"Expected a count for each of {len(scans)} maps, but got {len(counts)}.")
    records = records_of([scan for scan, _ in known], Counting(replace(settings, calibration=None)), jobs=jobs)
    if failed := [f"{one.name}: {one.error}" for one in records.values() if not one.is_ok]:
        raise TruthError(f"{len(failed)} of {len(known)} maps could not be counted: {listed(failed)}.")
    tables = [records[place].candidate_tables(*features)[0] for place in range(len(known))]
    return tables, [int(count) for _, count in known]


def _are_paths(maps: Maps) -> bool:
    return isinstance(maps, str | os.PathLike) or all(isinstance(one, str | os.PathLike) for one in maps)


def _paths(maps: Maps) -> list[str | Path]:
    """What was given as files."""
    if not _are_paths(maps):
        raise TruthError("Expected files with a table or masks. With arrays, pass a count for each of them.")
    given = [maps] if isinstance(maps, str | os.PathLike) else maps
    return [one if isinstance(one, str) else Path(one) for one in given]  # type: ignore[arg-type]
