"""An evaluation → ``evaluation.html``, one file that needs nothing else, and its figures as files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lesioncount.assess.evaluation import read_evaluation
from lesioncount.assess.evaluation.evaluation import Evaluation, ScanRow, systematically_off
from lesioncount.assess.evaluation.method import EvaluatedMethod
from lesioncount.report.charts import THIN
from lesioncount.report.drawing import COLOURS, Figure, write_with_figures
from lesioncount.report.evaluation_figures import figures_of, shown_scans
from lesioncount.report.evaluation_scores import PERCENT, SCORES
from lesioncount.report.templates import check_can_report, rendered
from lesioncount.trust.scores.estimate import Estimate

# Scans listed as the most wrong: enough to learn from, few enough to look at.
_MOST_WRONG = 20


def write_evaluation_page(folder: Path, evaluation: Evaluation | None = None) -> Path:
    """Write a page that shows how good counts are, in words, tables and figures.

    Parameters
    ----------
    folder : path
        Where the page is written. The figures are saved in ``figures`` beside it, for papers and slides.
    evaluation : Evaluation, optional
        Default: read from ``evaluation.json`` in the folder.

    Returns
    -------
    Path
        Of the page, ``evaluation.html`` in the folder.

    Raises
    ------
    MapFileError
        When there is no evaluation in the folder, or the page cannot be written.
    """
    check_can_report()
    folder = Path(folder)
    if evaluation is None:
        evaluation = read_evaluation(folder)
    figures = figures_of(evaluation)
    return write_with_figures(folder, "evaluation.html", _rendered(evaluation, figures), figures)


def _rendered(evaluation: Evaluation, figures: dict[str, Figure]) -> str:
    found = comparisons(evaluation)
    return rendered(
        "evaluation.html.j2",
        evaluation=evaluation,
        figures=figures,
        # Calibration error, say, has no value where no count can be hit.
        scores={name: score for name, score in SCORES.items() if evaluation.ours.score(name).is_defined},
        all_scores=SCORES,
        most_wrong=_most_wrong(evaluation.scans),
        comparisons=found,
        headline=" ".join(headline(evaluation)),
        systematic=systematically_off(evaluation),
        n_shown=len(shown_scans(evaluation)),
        conclusion=conclusion(evaluation, found),
        colours=COLOURS,
        thin=THIN,
    )


def _most_wrong(scans: Sequence[ScanRow]) -> list[ScanRow]:
    """The scans with the largest ranked probability scores, the worst first."""
    scored = [scan for scan in scans if not math.isnan(scan.rps)]
    return sorted(scored, key=lambda scan: -scan.rps)[:_MOST_WRONG]


Verdict = Literal["better", "no clear difference", "worse", "too few scans to tell"]

# What else methods are compared by: the error in lesions or, with bins, how often the class is right.
_BY_ERROR, _BY_ACCURACY = ("mae", "mean error", -1), ("accuracy", "count accuracy", 1)


def headline(evaluation: Evaluation) -> tuple[str, ...]:
    """How far counts are off, in lesions, and how often they are right or near: a few sentences."""
    ours, n = evaluation.ours, len(evaluation.scans)
    scan, lesions = ("scan", "lesions") if evaluation.of == "lesions" else ("pair", f"{evaluation.of} lesions")
    mean = f"; a {scan} has {evaluation.mean_truth:.3g} {lesions}" if n else ""
    truth = "the truth" if evaluation.readers is None else "the count of a reader"
    together = f" (counts from {evaluation.bins} on as one class)" if evaluation.bins is not None else ""
    return (
        f"The count of {ours.name} is off by {_said(ours, 'mae', unit=f' {lesions}')} on average{mean}.",
        f"Its bias is {_said(ours, 'bias', unit=' lesions')}: {_direction(evaluation)}.",
        f"The most probable count is right in {_said(ours, 'accuracy')} of {scan}s{together}.",
        f"The median is within 10{PERCENT} of the truth in {_said(ours, 'within_10_percent')} and within 1 lesion in "
        f"{_said(ours, 'within_1')}.",
        f"The 90{PERCENT} interval holds {truth} in {_said(ours, 'coverage90')}.",
        *(() if evaluation.readers is None else (evaluation.readers.in_words,)),
    )


def _direction(evaluation: Evaluation) -> str:
    bias = evaluation.ours.score("bias")
    if not evaluation.can_judge:
        what = "scans" if evaluation.n_groups == evaluation.n_scans else "groups"
        few = f"1 {what[:-1]} is" if evaluation.n_groups == 1 else f"{evaluation.n_groups} {what} are"
        return f"{few} too few to tell whether counts are too high or too low"
    if not bias.has_interval or bias.low <= 0 <= bias.high:
        return "neither clearly too high nor too low"
    return "too low" if bias.value < 0 else "too high"


def _said(method: EvaluatedMethod, name: str, *, unit: str = "") -> str:
    score, found = SCORES[name], method.score(name)
    interval = f" [{score.interval(found)}]" if found.has_interval and found.low < found.high else ""
    return f"{score.text(found.value, signed=name == 'bias')}{unit}{interval}"


@dataclass(frozen=True)
class Comparison:
    """One method beside another: the verdict by the headline score, and sentences that say what it stands on."""

    one: EvaluatedMethod
    other: EvaluatedMethod
    verdict: Verdict
    second_verdict: Verdict
    second_name: str
    sentence: str
    second_sentence: str


def compare(evaluation: Evaluation, one: EvaluatedMethod, other: EvaluatedMethod) -> Comparison:
    """Compare two methods by RPS, where lower is better, and by mean error or, with bins, by accuracy."""
    rps, rps_words = _by_score(evaluation, one, other, "rps", sign=-1)
    key, name, sign = _BY_ERROR if evaluation.bins is None else _BY_ACCURACY
    second, words = _by_score(evaluation, one, other, key, sign=sign)
    return Comparison(one, other, rps, second, name, f"RPS {rps_words}", f"{name.capitalize()} {words}")


def comparisons(evaluation: Evaluation) -> list[Comparison]:
    """Our method beside every other; the raw counts where only those were compared scan by scan."""
    found = []
    for other in evaluation.methods.values():
        if other.key == evaluation.ours.key:
            continue
        one, raw = evaluation.ours, evaluation.methods["raw"]
        is_paired = evaluation.difference(one, other, "rps") is not None
        if not is_paired and other is not raw and evaluation.difference(raw, other, "rps") is not None:
            one = raw
        found.append(compare(evaluation, one, other))
    return found


def _by_score(
    evaluation: Evaluation, one: EvaluatedMethod, other: EvaluatedMethod, name: str, *, sign: int
) -> tuple[Verdict, str]:
    score, mine, yours = SCORES[name], one.score(name), other.score(name)
    values = f"{score.text(mine.value)} against {score.text(yours.value)}"
    gain = evaluation.difference(one, other, name)
    if gain is None:
        # Whether two intervals are disjoint is less sharp than a paired difference, but never too hopeful.
        apart = Estimate(low=mine.low - yours.high, high=mine.high - yours.low)
        verdict = _verdict(evaluation, apart, sign)
        return verdict, f"{values}; the two were compared by their intervals, not scan by scan."
    verdict = _verdict(evaluation, gain, sign)
    unit = " percentage points" if score.is_share else ""
    difference = f"difference {score.text(gain.value, signed=True)}{unit}"
    if not gain.has_interval:
        return verdict, f"{values}: {difference}, without an interval."
    level = f"{100 * evaluation.confidence:g}{PERCENT} interval"
    includes = ", which includes 0" if verdict == "no clear difference" else ""
    return verdict, f"{values}: {difference}, {level} {score.interval(gain, signed=True)}{includes}."


def _verdict(evaluation: Evaluation, difference: Estimate, sign: int) -> Verdict:
    """By the interval of a difference; larger is better with a sign of 1."""
    if not evaluation.can_judge:
        return "too few scans to tell"
    gain = difference if sign > 0 else -difference
    if not gain.has_interval or gain.low <= 0 <= gain.high:
        return "no clear difference"
    return "better" if gain.low > 0 else "worse"


# The bad news first. That the second score is better needs no sentence of its own: the table says it.
_CONCLUSIONS: tuple[tuple[str, Verdict, str], ...] = (
    ("verdict", "worse", "By RPS, {} is worse than {}."),
    ("verdict", "no clear difference", "By RPS, {} shows no clear difference from {}."),
    ("verdict", "better", "By RPS, {} is better than {}."),
    ("second_verdict", "worse", "By {second}, {} is worse than {}."),
    ("second_verdict", "no clear difference", "By {second}, {} shows no clear difference from {}."),
)


def conclusion(evaluation: Evaluation, found: list[Comparison]) -> str:
    """The comparisons with simple methods in a few sentences."""
    sentences = []
    for kind, verdict, sentence in _CONCLUSIONS:
        others: dict[str, list[str]] = {}
        for comparison in found:
            if getattr(comparison, kind) == verdict and not comparison.other.is_ours:
                who = "it" if comparison.one is evaluation.ours else "the count before calibration"
                others.setdefault(who, []).append(comparison.other.name)
        second = (_BY_ERROR if evaluation.bins is None else _BY_ACCURACY)[1]
        sentences += [sentence.format(who, _listed(names), second=second) for who, names in others.items()]
    return " ".join(sentences)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
