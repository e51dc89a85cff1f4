"""``evaluation.json`` → ``evaluation.html``, one file that needs nothing else, and its figures as files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.files.atomic import write_text
from lesioncount.optional import optional
from lesioncount.report.drawing import COLOURS, Figure
from lesioncount.report.evaluation_content import Evaluation, read_evaluation
from lesioncount.report.evaluation_figures import figures_of
from lesioncount.report.evaluation_words import SCORES, comparisons, conclusion
from lesioncount.report.reliability_figures import THIN
from lesioncount.report.templates import template
from lesioncount.version import __version__


def write_evaluation_page(folder: Path) -> Path:
    """Write a page that shows how good counts are, in words, tables and figures.

    Parameters
    ----------
    folder : path
        With ``evaluation.json``. The figures are written to ``figures`` in it as well, for papers and slides.

    Returns
    -------
    Path
        Of the page, ``evaluation.html`` in the folder.

    Raises
    ------
    MapFileError
        When there is no evaluation in the folder, or the page cannot be written.
    """
    for module in ("matplotlib", "jinja2"):
        optional(module, "report", "Writing the report")
    folder = Path(folder)
    evaluation = read_evaluation(folder)
    figures = figures_of(evaluation)
    _save_figures(folder / "figures", figures)
    page = folder / "evaluation.html"
    write_text(page, _rendered(evaluation, figures))
    return page


def _save_figures(folder: Path, figures: dict[str, Figure]) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise MapFileError(f"{folder} cannot be made: {error.strerror}.") from error
    for name, figure in figures.items():
        write_text(folder / f"{name}.svg", figure.file)


def _rendered(evaluation: Evaluation, figures: dict[str, Figure]) -> str:
    found = comparisons(evaluation)
    text: str = template("evaluation.html.j2").render(
        evaluation=evaluation,
        content=evaluation.content,
        figures=figures,
        scores={name: score for name, score in SCORES.items() if evaluation.ours.scores.get(name) is not None},
        all_scores=SCORES,
        comparisons=found,
        conclusion=conclusion(evaluation, found),
        colours=COLOURS,
        thin=THIN,
        version=__version__,
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )
    return text
