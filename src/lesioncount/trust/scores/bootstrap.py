"""How much a score would differ for other scans: resampling of scans, or of patients."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.trust.scores.classification import ratio
from lesioncount.trust.scores.estimate import Estimate

if TYPE_CHECKING:
    from lesioncount.trust.scores.predictions import Predictions

N_RESAMPLES = 1000
CONFIDENCE = 0.95

# Resamples in memory at a time, and their numbers in all: 2 MB. Of very many scans there are fewer at a time.
_AT_ONCE, _MOST_NUMBERS = 100, 250_000


def resampled_weights(
    groups: Sequence[Hashable], /, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Iterator[NDArray[np.float64]]:
    """How often each scan is drawn in each resample: blocks of shape (some, n).

    Scans of one group, such as a patient, are drawn together: they resemble each other, and drawn one by one they would
    make intervals too short.
    """
    codes = {group: code for code, group in enumerate(dict.fromkeys(groups))}
    member = np.array([codes[group] for group in groups], dtype=np.intp)
    rng = np.random.default_rng(seed)
    even = np.full(len(codes), 1 / max(len(codes), 1))
    at_once = max(1, min(_AT_ONCE, _MOST_NUMBERS // max(len(member), 1)))
    for begin in range(0, n_resamples, at_once):
        drawn = rng.multinomial(len(codes), even, size=min(at_once, n_resamples - begin))
        yield drawn[:, member].astype(np.float64)


def interval_of(resamples: NDArray[np.float64], /) -> tuple[float, float]:
    """The interval that holds 95 % of the resamples; NaN where there are none."""
    finite = resamples[np.isfinite(resamples)]
    if len(finite) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _ends(resamples: NDArray[np.float64], groups: Sequence[Hashable]) -> tuple[float, float]:
    """The same, but NaN for scans of one group: drawn again they are always the same, which says nothing of others."""
    return interval_of(resamples) if len(set(groups)) > 1 else (float("nan"), float("nan"))


def estimates_of(
    values: Iterable[float],
    measure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    groups: Sequence[Hashable],
    /,
    *,
    seed: int = 0,
) -> list[Estimate]:
    """Values with their intervals: for weights (some, n) of resamples, the measure gives them as (some, values)."""
    samples = np.concatenate([measure(weights) for weights in resampled_weights(groups, seed=seed)])
    return [Estimate(float(value), *_ends(of, groups)) for value, of in zip(values, samples.T, strict=True)]


def resampled_ratios(
    parts: NDArray[np.float64], wholes: NDArray[np.float64], groups: Sequence[Hashable], /, *, seed: int = 0
) -> list[Estimate]:
    """The sum of each column of parts over that of wholes, both (n, m), with intervals from the same resamples.

    With a whole of 1 it is the mean over all scans, with one of 0 and 1 the mean over some of them.
    """
    values = np.asarray(ratio(parts.sum(axis=0), wholes.sum(axis=0)))
    return estimates_of(values, lambda weights: ratio(weights @ parts, weights @ wholes), groups, seed=seed)


def score_all(
    methods: Mapping[str, Predictions],
    /,
    *,
    groups: Sequence[Hashable],
    shares: ArrayLike = 1.0,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> tuple[dict[str, dict[str, Estimate]], dict[tuple[str, str], dict[str, Estimate]]]:
    """Scores of each method, and paired differences between each two, from the same resamples of groups.

    With ``shares``, rows count for so much: a scan that was read by R readers has R rows of 1 / R.
    """
    share = np.broadcast_to(np.asarray(shares, dtype=np.float64), len(groups))
    once = {key: method.scores(share[None]) for key, method in methods.items()}
    blocks: dict[str, list[NDArray[np.float64]]] = {key: [] for key in methods}
    for drawn in resampled_weights(groups, n_resamples=n_resamples, seed=seed):
        weights = drawn * share
        for key, method in methods.items():
            blocks[key].append(np.stack(list(method.scores(weights).values())))
    values = {key: np.concatenate(list(scores.values())) for key, scores in once.items()}
    samples = {key: np.concatenate(of, axis=1) for key, of in blocks.items()}

    def estimates(key: str, found: NDArray[np.float64], drawn: NDArray[np.float64]) -> dict[str, Estimate]:
        each = zip(once[key], found, drawn, strict=True)
        return {score: Estimate(float(value), *_ends(of, groups)) for score, value, of in each}

    pairs = [(a, b) for a in methods for b in methods if a != b]
    return (
        {key: estimates(key, values[key], samples[key]) for key in methods},
        {(a, b): estimates(a, values[a] - values[b], samples[a] - samples[b]) for a, b in pairs},
    )
