"""An evaluation → ``evaluation.html``, one file that needs nothing else, and its figures as files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lesioncount.assess.evaluation import Evaluation, read_evaluation
from lesioncount.assess.evaluation.scan_row import ScanRow
from lesioncount.assess.evaluation.systematic import systematically_off
from lesioncount.folder.output import OutputFolder
from lesioncount.report.agreement_figures import shown_scans
from lesioncount.report.charts import THIN
from lesioncount.report.drawing import COLOURS, Figure
from lesioncount.report.evaluation_figures import figures_of
from lesioncount.report.evaluation_scores import SCORES
from lesioncount.report.evaluation_words import comparisons, conclusion, headline
from lesioncount.report.templates import check_can_report, template
from lesioncount.version import __version__

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
    ours = OutputFolder(folder)
    ours.check(["evaluation.html", *(f"figures/{name}.svg" for name in figures)])
    for name, figure in figures.items():
        ours.write_text(f"figures/{name}.svg", figure.file)
    ours.write_text("evaluation.html", _rendered(evaluation, figures))
    return folder / "evaluation.html"


def _rendered(evaluation: Evaluation, figures: dict[str, Figure]) -> str:
    found = comparisons(evaluation)
    text: str = template("evaluation.html.j2").render(
        evaluation=evaluation,
        figures=figures,
        scores={name: score for name, score in SCORES.items() if _is_defined(evaluation, name)},
        all_scores=SCORES,
        most_wrong=_most_wrong(evaluation.scans),
        comparisons=found,
        headline=" ".join(headline(evaluation)),
        systematic=systematically_off(evaluation),
        n_shown=len(shown_scans(evaluation)),
        conclusion=conclusion(evaluation, found),
        colours=COLOURS,
        thin=THIN,
        version=__version__,
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )
    return text


def _is_defined(evaluation: Evaluation, name: str) -> bool:
    """Whether a score has a value for our counts: calibration error, say, has none where no count can be hit."""
    return evaluation.ours.score(name).is_defined


def _most_wrong(scans: Sequence[ScanRow]) -> list[ScanRow]:
    """The scans with the largest ranked probability scores, the worst first."""
    scored = [scan for scan in scans if not math.isnan(scan.rps)]
    return sorted(scored, key=lambda scan: -scan.rps)[:_MOST_WRONG]
