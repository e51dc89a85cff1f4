"""A summary of groups → ``summary.html``, one file that needs nothing else, and its figures as files."""

from __future__ import annotations

import math
from pathlib import Path

from lesioncount.assess.groups.group_row import RatioRow
from lesioncount.assess.groups.trial_summary import TrialSummary
from lesioncount.report.drawing import write_with_figures
from lesioncount.report.group_figures import figures_of
from lesioncount.report.templates import check_can_report, rendered
from lesioncount.trust.scores.estimate import Estimate


def write_summary_page(folder: Path, summary: TrialSummary) -> Path:
    """Write a page that shows what is known of groups of patients.

    Parameters
    ----------
    folder : path
        Where the page is written. The figures are saved in ``figures`` beside it, for papers and slides.
    summary : TrialSummary
        What `summarize` gives.

    Returns
    -------
    Path
        Of the page, ``summary.html`` in the folder.
    """
    check_can_report()
    figures = figures_of(summary)
    text = rendered(
        "groups.html.j2",
        summary=summary,
        figures=figures,
        verdicts=[verdict(summary, ratio) for ratio in summary.ratios],
        per=per(summary),
        number=number,
        percent=percent,
        ratio_words=ratio_words,
    )
    return write_with_figures(folder, "summary.html", text, figures)


# Smaller p-values are said to be smaller: their digits mean nothing.
_LEAST_P = 0.001


def number(value: float) -> str:
    """Three digits or so, whether it is a tenth of a lesion or hundreds of them."""
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}"


def with_interval(estimate: Estimate) -> str:
    """A number, and the ends of its interval where it has one."""
    if not estimate.has_interval:
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def percent(share: float) -> str:
    """A share in percent; a dash when it is unknown."""
    return "–" if math.isnan(share) else f"{100 * share:.0f} %"


def share(estimate: Estimate) -> str:
    """A share in percent, and the ends of its interval where it has one."""
    ends = f" [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]" if estimate.has_interval else ""
    return f"{percent(estimate.value)}{ends}"


def per(summary: TrialSummary) -> str:
    """What rates are per."""
    return f"per {summary.unit}" if summary.exposure is None else f"per unit of {summary.exposure}"


def ratio_words(ratio: RatioRow) -> str:
    """A ratio with its interval and p-value, or why there is none."""
    if not ratio.is_known:
        return f"not known: {ratio.why_unknown}"
    p = f"p < {_LEAST_P}" if ratio.p_value < _LEAST_P else f"p = {ratio.p_value:.3f}"
    return f"{with_interval(ratio.ratio)}, {p}, {percent(ratio.doubt_share)} of the variance is doubt"


def verdict(summary: TrialSummary, ratio: RatioRow) -> str:
    """What a ratio says, in a sentence."""
    group, reference = ratio.name, summary.reference.name
    if not ratio.is_known:
        return f"Whether {group} had fewer {summary.lesions} than {reference} cannot be said: {ratio.why_unknown}."
    said = with_interval(ratio.ratio)
    if ratio.ratio.low <= 1 <= ratio.ratio.high:
        return f"{group} against {reference}: no clear difference. The rate ratio is {said}; 1 is no difference."
    fewer = "fewer" if ratio.ratio.value < 1 else "more"
    return f"{group} had {fewer} {summary.lesions} than {reference}: rate ratio {said}."


def explained(summary: TrialSummary) -> list[str]:
    """What the numbers are, in a few sentences."""
    level = f"{100 * summary.confidence:g} %"
    what, unit = summary.lesions, summary.unit
    mean = f"Means are per {unit}" if summary.exposure is None else f"Rates are {what} per unit of {summary.exposure}"
    sentences = [
        f"Brackets are {level} intervals. {what.capitalize()} are the total of these {unit}s, whose counts are in "
        f"doubt. {mean}, and their intervals also allow for how patients differ. Doubt is its share of the variance of "
        "the mean."
    ]
    if summary.has_several_scans:
        sentences.append(
            f"Some patients have several {unit}s. Patients, with all their {unit}s, are what was sampled; means per "
            "patient are in groups.tsv."
        )
    if any(ratio.is_known for ratio in summary.ratios):
        sentences.append(
            f"Ratios: negative binomial regression on {len(summary.imputations)} imputations (seed {summary.seed}), "
            "pooled by Rubin's rules."
        )
    return sentences
