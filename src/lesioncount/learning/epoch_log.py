"""What a training logs after each epoch → a table."""

from __future__ import annotations

import csv
import io
from itertools import count
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from lesioncount.folder.output import OutputFolder


class EpochLog(Logger):
    """A table with a row for each time something was logged, ``logs/metrics.csv``.

    Lightning's own logger would remove a table that is there already. Here it is replaced if it is ours and the
    training begins again; otherwise the table gets another name: ``metrics-2.csv`` and so on.

    Parameters
    ----------
    files : OutputFolder
        Of the training.
    resume : bool
        Whether an earlier table belongs to this training, and stays.
    """

    def __init__(self, files: OutputFolder, *, resume: bool) -> None:
        super().__init__()
        self._files, self._resume = files, resume
        self._rows: list[dict[str, float]] = []
        self._place: str | None = None

    @property
    def name(self) -> str:
        """Of the folder of logs."""
        return "logs"

    @property
    def version(self) -> str:
        """There is only one."""
        return ""

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Nothing: ``config.json`` has them."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Add a row."""
        self._rows.append({"step": step or 0} | {name: float(value) for name, value in metrics.items()})

    @rank_zero_only
    def save(self) -> None:
        """Write the table, complete or not at all."""
        if not self._rows:
            return
        if self._place is None:
            self._place = next(name for name in map(_numbered, count(1)) if self._is_free(name))
        columns = dict.fromkeys(name for row in self._rows for name in row)
        text = io.StringIO()
        table = csv.DictWriter(text, list(columns), lineterminator="\n")
        table.writeheader()
        table.writerows(self._rows)
        self._files.write_text(self._place, text.getvalue())

    @rank_zero_only
    def finalize(self, status: str) -> None:  # noqa: ARG002 - Lightning gives it
        """Write what is left."""
        self.save()

    def _is_free(self, name: str) -> bool:
        path = self._files.path / name
        return not (path.exists() or path.is_symlink()) or (not self._resume and self._files.is_ours(name))


def _numbered(number: int) -> str:
    return "logs/metrics.csv" if number == 1 else f"logs/metrics-{number}.csv"
