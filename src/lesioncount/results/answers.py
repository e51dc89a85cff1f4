"""Questions that are asked of a scan → the probability that the answer is yes: rows of ``answers.tsv``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from lesioncount.folder.plain import present
from lesioncount.questions import Question, probability_of
from lesioncount.regions import OUTSIDE
from lesioncount.regions.within import SEPARATOR
from lesioncount.results.region_numbers import regional_count
from lesioncount.results.region_settings import RegionSettings
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.scan_numbers import WHOSE_COLUMNS
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.trials import COUNT, trials_of


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The probability that a scan fulfils a question.

    Attributes
    ----------
    question : str
        As text, in its plainest form.
    name : str or None
        Of a question that has one.
    probability, probability_calibrated : float
        As the map has it, and after a calibration where there was one; of an ensemble, the mean over its members.
    missing : tuple of str
        What a named question asks for and is not counted here: taken as no lesion, so that the answer is a lower bound.
    """

    question: str
    name: str | None = None
    probability: float
    probability_calibrated: float | None = None
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what was read from a file."""
        if not all(0 <= one <= 1 for one in (self.probability, self.best)):
            raise ValueError("expected answers to be probabilities")

    @property
    def best(self) -> float:
        """The calibrated probability, or that of the map where there was no calibration."""
        return self.probability if self.probability_calibrated is None else self.probability_calibrated

    def to_dict(self) -> dict[str, Any]:
        """As plain values, of what there is."""
        return present({one.name: getattr(self, one.name) for one in fields(self)})

    def row(self) -> dict[str, Any]:
        """The cells of its row."""
        return self.to_dict() | ({"missing": f"{SEPARATOR} ".join(self.missing)} if self.missing else {})


OPTIONAL_ANSWER_COLUMNS = (*WHOSE_COLUMNS, "name", "probability_calibrated", "missing")
ANSWER_COLUMNS = ("scan", *WHOSE_COLUMNS, *(one.name for one in fields(Answer)))


def answers(
    questions: Sequence[Question], counts: Sequence[ScanCount], calibration: Calibration | None
) -> tuple[Answer, ...]:
    """The answers of a scan, of one map or of several members whose answers are averaged."""
    if not questions:
        return ()
    places = counts[0].result.places
    known = (COUNT, *(() if places is None else places.members))
    return tuple(_answer(question, known, counts, calibration) for question in questions)


def _answer(
    question: Question, known: Collection[str], counts: Sequence[ScanCount], calibration: Calibration | None
) -> Answer:
    asked, missing = question.given(known)
    return Answer(
        question=str(question),
        name=question.name,
        probability=_mean(asked, counts, Calibration()),
        probability_calibrated=None if calibration is None else _mean(asked, counts, calibration),
        missing=missing,
    )


def _mean(question: Question, counts: Sequence[ScanCount], calibration: Calibration) -> float:
    of_maps = (trials_of(regional_count(count, calibration), question.names) for count in counts)
    return float(np.mean([probability_of(question, trials) for trials in of_maps]))


def check_questions(questions: Sequence[Question], regions: RegionSettings | None) -> None:
    """Raise if something is asked for that no scan can tell: before anything is counted."""
    for question in questions:
        if regions is None:
            known: tuple[str, ...] = (COUNT,)
        elif regions.names is None:
            continue  # label maps will tell
        else:
            numbers = (name for name in question.names if name.isdecimal())  # of labels that have no name
            known = (COUNT, OUTSIDE, *regions.names.values(), *(one.name for one in regions.within), *numbers)
        question.given(tuple(dict.fromkeys(known)))
