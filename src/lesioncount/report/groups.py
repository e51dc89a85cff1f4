"""A summary of groups → ``summary.html``, one file that needs nothing else, and its figures as files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lesioncount.assess.groups import TrialSummary
from lesioncount.folder.output import OutputFolder
from lesioncount.report.drawing import Figure
from lesioncount.report.group_figures import figures_of
from lesioncount.report.group_words import explained, number, per, percent, ratio_words, verdict, with_interval
from lesioncount.report.templates import check_can_report, template
from lesioncount.version import __version__


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
    ours = OutputFolder(folder)
    ours.check(["summary.html", *(f"figures/{name}.svg" for name in figures)])
    for name, figure in figures.items():
        ours.write_text(f"figures/{name}.svg", figure.file)
    ours.write_text("summary.html", _rendered(summary, figures))
    return Path(folder) / "summary.html"


def _rendered(summary: TrialSummary, figures: dict[str, Figure]) -> str:
    words = {"number": number, "percent": percent, "ratio_words": ratio_words, "with_interval": with_interval}
    text: str = template("groups.html.j2").render(
        summary=summary,
        figures=figures,
        verdicts=[verdict(summary, ratio) for ratio in summary.ratios],
        explained=explained(summary),
        per=per(summary),
        version=__version__,
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        **words,
    )
    return text
