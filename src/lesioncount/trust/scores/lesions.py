"""Candidates and true lesions in one scan: which belongs to which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ScoreError

# When a candidate *is* a lesion, wherever that is asked: whether it exists, and how many candidates are right.
OWNERSHIP_RULE = (
    "each lesion belongs to at most one candidate and each candidate to at most one lesion, largest overlap first"
)


@dataclass(frozen=True, eq=False)
class LesionMatch:
    """How the candidates of a scan and its true lesions overlap.

    Parameters
    ----------
    n_lesions : int
        True lesions.
    touches : array of bool, shape (n_candidates,)
        Whether each candidate shares a voxel with a true lesion.
    owns : array of bool, shape (n_candidates,)
        Whether it is a lesion, by `OWNERSHIP_RULE`. These are the candidates that a count should count.
    pairs : array of int, shape (n_pairs, 2)
        Candidate and lesion, counted from 0, of each pair that shares a voxel.
    n_missed : int
        Lesions that no candidate touches.
    n_split : int
        Lesions that several candidates touch.
    n_merged : int
        Candidates that touch several lesions.
    """

    n_lesions: int
    touches: NDArray[np.bool_]
    owns: NDArray[np.bool_]
    pairs: NDArray[np.int64]
    n_missed: int
    n_split: int
    n_merged: int

    def n_found_by(self, chosen: NDArray[np.bool_]) -> int:
        """Lesions that at least one of these candidates touches."""
        return len(np.unique(self.pairs[chosen[self.pairs[:, 0]], 1]))

    @property
    def n_without_own(self) -> int:
        """Lesions that belong to no candidate: missed ones, and those merged with another."""
        return self.n_lesions - int(self.owns.sum())


def match_lesions(
    candidates: NDArray[np.integer], lesions: NDArray[np.integer], /, *, n_candidates: int, n_lesions: int
) -> LesionMatch:
    """Compare two label maps of the same grid, 0 for background and 1, 2, … for regions.

    Examples
    --------
    >>> candidates = np.array([[1, 1, 0, 2, 0, 3]])
    >>> lesions = np.array([[1, 0, 0, 2, 2, 2]])
    >>> match = match_lesions(candidates, lesions, n_candidates=3, n_lesions=2)
    >>> match.owns, match.n_split
    (array([ True,  True, False]), 1)
    """
    if candidates.shape != lesions.shape:
        raise ScoreError(f"Expected label maps of one shape, but they are {candidates.shape} and {lesions.shape}.")
    both = (candidates > 0) & (lesions > 0)
    pairs = candidates[both].astype(np.int64) * (n_lesions + 1) + lesions[both]
    found, size = np.unique(pairs, return_counts=True)
    candidate, lesion = found // (n_lesions + 1) - 1, found % (n_lesions + 1) - 1
    per_lesion = np.bincount(lesion, minlength=n_lesions)
    per_candidate = np.bincount(candidate, minlength=n_candidates)
    owns, taken = np.zeros(n_candidates, bool), np.zeros(n_lesions, bool)
    for i in np.argsort(-size, kind="stable"):
        if not owns[candidate[i]] and not taken[lesion[i]]:
            owns[candidate[i]] = taken[lesion[i]] = True
    return LesionMatch(
        n_lesions,
        per_candidate > 0,
        owns,
        np.stack([candidate, lesion], axis=1),
        int((per_lesion == 0).sum()),
        int((per_lesion > 1).sum()),
        int((per_candidate > 1).sum()),
    )
