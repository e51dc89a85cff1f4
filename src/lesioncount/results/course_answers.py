"""Questions that are asked of a pair of sessions → the probability that the answer is yes."""

from __future__ import annotations

from collections.abc import Mapping

from lesioncount.changes.lesion_changes import LesionChanges
from lesioncount.questions import Question, probability_of
from lesioncount.questions.over_time import changes_asked_for
from lesioncount.results.answers import Answer
from lesioncount.results.course_settings import KINDS, ChangeSettings
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable, Counted
from lesioncount.trust.trials import trials_of_changes

_Tables = Mapping[Counted, CandidateTable]
_Calibrations = Mapping[Counted, Calibration]


def table_of(step: LesionChanges, kind: Counted, *features: str) -> CandidateTable:
    """What both maps say of the candidates that may be new, gone or persisting."""
    of, rises = (step.before, step.fallen) if kind == "gone" else (step.after, step.risen)
    return CandidateTable.of_candidates(of.candidates, *features, other=rises.others, risen=rises.heights)


def answers_of(step: LesionChanges, settings: ChangeSettings) -> tuple[Answer, ...]:
    """The answers of a pair of sessions."""
    recorded = settings.recorded
    as_it_is = {kind: recorded.as_it_is(kind) for kind in KINDS}
    given = {fit.calibration.counted: fit.calibration for fit in settings.calibrations}
    tables = {kind: table_of(step, kind, *given.get(kind, as_it_is[kind]).weights) for kind in KINDS}
    return tuple(_answer(question, tables, as_it_is, given) for question in settings.questions)


def _answer(question: Question, tables: _Tables, as_it_is: _Calibrations, given: _Calibrations) -> Answer:
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
