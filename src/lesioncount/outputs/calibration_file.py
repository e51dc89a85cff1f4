"""What was learned from known counts, as a file for maps to come: ``calibration.json``."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from lesioncount.errors import CalibrationError
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.output import Output
from lesioncount.results.results import Results

NAME = "calibration.json"


@dataclass(frozen=True)
class CalibrationFile(Output):
    """The calibration of a run that has learned one.

    Attributes
    ----------
    setting : KnownFolds or None
    was_there : bool
        Whether an earlier run in the folder has learned one. Somebody may have written another of this name, which
        stays.
    """

    was_there: bool = False

    @property
    def of_run(self) -> tuple[str, ...]:
        """The file."""
        return (NAME,)

    def finish(self, folder: OutputFolder, results: Results, written: Collection[str]) -> None:
        """Write it, unless it is there; remove that of another run."""
        del results, written  # it depends on neither
        if self.is_wanted:
            from lesioncount.trust.fitting.evidence import load_calibration  # not at the top: few runs learn one

            text = self.setting.fit.to_json()
            with suppress(CalibrationError):
                if load_calibration(folder.path / NAME).to_json() == text:
                    return
            folder.write_text(NAME, text)
        elif self.was_there:
            folder.remove(NAME)
