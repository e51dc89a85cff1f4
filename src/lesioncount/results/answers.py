"""Questions that are asked of a scan, or of a pair of them → the probability of yes: rows of ``answers.tsv``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from lesioncount.changes.lesion_changes import LesionChanges
from lesioncount.folder.plain import UNKNOWN, cells, columns, optional_columns
from lesioncount.questions import Question, probability_of
from lesioncount.questions.over_time import changes_asked_for
from lesioncount.regions import OUTSIDE
from lesioncount.regions.within import SEPARATOR
from lesioncount.results.recorded import KINDS
from lesioncount.results.region_numbers import regional_count
from lesioncount.results.region_settings import RegionSettings
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.settings import ChangeSettings
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable, Counted
from lesioncount.trust.trials import COUNT, trials_of, trials_of_changes

_Tables = Mapping[Counted, CandidateTable]
_Calibrations = Mapping[Counted, Calibration]


class Answer(Struct, frozen=True, gc=False, omit_defaults=True):
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

    question: str = ""
    name: str | None = None
    probability: float = UNKNOWN
    probability_calibrated: float | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether its probabilities are some."""
        return all(0 <= one <= 1 for one in (self.probability, self.best))

    @property
    def best(self) -> float:
        """The calibrated probability, or that of the map where there was no calibration."""
        return self.probability if self.probability_calibrated is None else self.probability_calibrated

    def row(self) -> dict[str, Any]:
        """The cells of its row."""
        return cells(self) | ({"missing": f"{SEPARATOR} ".join(self.missing)} if self.missing else {})


ANSWER_COLUMNS, OPTIONAL_ANSWER_COLUMNS = columns(Answer), optional_columns(Answer)


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


def table_of(step: LesionChanges, kind: Counted, *features: str) -> CandidateTable:
    """What both maps say of the candidates that may be new, gone or persisting."""
    of, rises = (step.before, step.fallen) if kind == "gone" else (step.after, step.risen)
    return CandidateTable.of_candidates(of.candidates, *features, other=rises.others, risen=rises.heights)


def answers_of_changes(step: LesionChanges, settings: ChangeSettings) -> tuple[Answer, ...]:
    """The answers of a pair of sessions."""
    as_it_is = {kind: settings.recorded.as_it_is(kind) for kind in KINDS}
    given = {fit.calibration.counted: fit.calibration for fit in settings.calibrations}
    tables = {kind: table_of(step, kind, *given.get(kind, as_it_is[kind]).weights) for kind in KINDS}
    return tuple(_answer_of_changes(question, tables, as_it_is, given) for question in settings.questions)


def _answer_of_changes(question: Question, tables: _Tables, as_it_is: _Calibrations, given: _Calibrations) -> Answer:
    """Calibrated if all that it asks for is: corrected numbers and others are not mixed."""
    is_calibrated = set(changes_asked_for(question.names)) <= set(given)
    return Answer(
        question=str(question),
        name=question.name,
        probability=_probability(question, tables, as_it_is),
        probability_calibrated=_probability(question, tables, given) if is_calibrated else None,
    )


def _probability(question: Question, tables: _Tables, calibrations: _Calibrations) -> float:
    return probability_of(question, trials_of_changes(tables, question.names, calibrations))
