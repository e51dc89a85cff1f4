"""What is new, gone and persisting between two scans → what questions are asked of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.questions.question import Question
from lesioncount.questions.tokens import unknown
from lesioncount.questions.trials import ExtraLesions, Trials

# What can be asked for, and which changes each is the number of; the count is that of the later scan.
CHANGES = {"new": ("new",), "gone": ("gone",), "persisting": ("persisting",), "count": ("new", "persisting")}

# What one candidate of the later scan is at most one of.
_OF_LATER = ("new", "persisting")


def asked_over_time(question: Question | str, /) -> Question:
    """A question about changes; QuestionError if it asks for anything else, such as a region."""
    asked = question if isinstance(question, Question) else Question.asked(question)
    missing = [name for name in asked.names if name not in CHANGES]
    if missing:
        raise unknown(missing, CHANGES)
    return asked


def changes_asked_for(names: Iterable[str]) -> tuple[str, ...]:
    """The changes that names in a question are numbers of."""
    return tuple(dict.fromkeys(kind for name in names for kind in CHANGES[name]))


def trials_over_time(
    names: Sequence[str],
    probability: Mapping[str, ArrayLike],
    /,
    *,
    weights: ArrayLike | None = None,
    extra: Mapping[str, tuple[ArrayLike, float]] | None = None,
) -> Trials:
    """Candidates of two scans as trials.

    A candidate of the later scan is new, or persists, or is no lesion: outcomes that exclude each other. Those of the
    earlier scan, which may be gone, are taken as independent of them.

    Parameters
    ----------
    names : sequence of str
        What is asked for: new, gone, persisting, and count.
    probability : mapping of str to array_like of float, shape (K,) or (M, K)
        Of each candidate, for each of the changes that are asked for, at M nodes that all have in common.
    weights : array_like of float, shape (M,), optional
        Of the nodes.
    extra : mapping of str to (array_like of float, float), optional
        Of some changes: the mean number of those without a candidate, at each node, and its shape.

    Examples
    --------
    >>> from lesioncount.questions import Question, probability_of
    >>> question = Question.parse("count >= 1 and gone = 0")
    >>> trials = trials_over_time(question.names, {"new": [0.5], "persisting": [0.25], "gone": [0.2]})
    >>> round(probability_of(question, trials), 4)
    0.6
    """
    kinds = changes_asked_for(names)
    p = [np.atleast_2d(np.asarray(probability[kind], dtype=np.float64)) for kind in kinds]
    sizes = [one.shape[1] for one in p]
    n_later = max((n for kind, n in zip(kinds, sizes, strict=True) if kind in _OF_LATER), default=0)
    trial = [np.arange(n) + (0 if kind in _OF_LATER else n_later) for kind, n in zip(kinds, sizes, strict=True)]
    return Trials(
        probability=np.concatenate(p, axis=1),
        adds=_adds(names, np.repeat(kinds, sizes)),
        weights=weights,  # type: ignore[arg-type]  # brought into shape there
        trial=np.concatenate(trial),
        extra=tuple(
            ExtraLesions(mean=mean, share=np.ones(1), adds=_adds(names, np.array([kind])), shape=shape)  # type: ignore[arg-type]  # likewise
            for kind, (mean, shape) in (extra or {}).items()
        ),
    )


def _adds(names: Iterable[str], kind: NDArray[np.str_]) -> dict[str, NDArray[np.bool_]]:
    return {name: np.isin(kind, CHANGES[name]) for name in names}
