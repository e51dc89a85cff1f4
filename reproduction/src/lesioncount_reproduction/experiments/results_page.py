"""Results in a folder → one page that needs nothing else: verdicts, tables and figures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lesioncount.folder.output import OutputFolder
from lesioncount.optional import optional
from lesioncount.report.drawing import Figure
from lesioncount.report.templates import template
from lesioncount.version import __version__
from lesioncount_reproduction.experiments.claims import STATEMENTS
from lesioncount_reproduction.experiments.result import EXPERIMENT_NAMES, Result
from lesioncount_reproduction.experiments.verdicts import claims_of

PAGE = "reproduce.html"

# What each experiment asks, and where it is in the paper.
QUESTIONS = {
    "threshold": ("How much does the count depend on the threshold?", "appendix C.1, figure 2"),
    "calibration": ("Do the probabilities of counts mean what they say?", "appendix C.2"),
    "uncertainty": ("Does the method know which counts are wrong?", "appendix C.3"),
    "multitask": ("What does training with counts gain?", "section 4.2, table 1"),
    "lowdata": ("What is left with a tenth of the training patients?", "appendix C.4"),
    "adversarial": ("How easily is the count fooled?", "appendix C.5"),
    "which": ("Which count should I use?", "not in the paper"),
}


def write_page(folder: Path, results: Sequence[Result]) -> Path:
    """Write ``reproduce.html``.

    Parameters
    ----------
    folder : Path
        Of the results.
    results : sequence of Result

    Returns
    -------
    Path
        Of the page.
    """
    optional("jinja2", "report", "Writing the report")
    text = template("reproduce.html.j2", "lesioncount_reproduction.experiments").render(
        claims=claims_of(results),
        statements=STATEMENTS,
        results=sorted(results, key=lambda one: (EXPERIMENT_NAMES.index(one.experiment), one.data_set != "synthetic")),
        questions=QUESTIONS,
        picture=_picture,
        version=__version__,
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )
    OutputFolder(folder).write_text(PAGE, text)
    return folder / PAGE


def _picture(figure: Figure) -> str:
    """A figure as the address of a picture: whatever its file holds, it is shown and not run."""
    return "data:image/svg+xml;base64," + base64.b64encode(figure.file.encode()).decode()
