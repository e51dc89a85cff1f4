"""What was found, by cause: counted, and the smallest input of each kept."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fuzzing.cases import Case, Outcome


@dataclass
class Finding:
    """A cause, and the smallest input that shows it."""

    case: Case
    outcome: Outcome
    n_bytes: int
    n: int = 1


@dataclass
class Findings:
    """All that became of inputs.

    Attributes
    ----------
    folder : Path
        Where inputs are kept.
    counts : dict
        How many inputs of each format had each kind of outcome.
    by_cause : dict
        The findings.
    """

    folder: Path
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    by_cause: dict[tuple[str, str, str], Finding] = field(default_factory=dict)

    def add(self, case: Case, outcome: Outcome, files: Path) -> None:
        """Count an outcome; keep the files of a finding if it is the first of its cause, or the smallest."""
        self.counts.setdefault(case.format, Counter())[outcome.kind] += 1
        if not outcome.is_finding:
            return
        key = (case.format, outcome.kind, outcome.cause)
        size = sum(file.stat().st_size for file in files.rglob("*") if file.is_file() and not file.is_symlink())
        before = self.by_cause.get(key)
        if before is not None:
            before.n += 1
            if before.n_bytes <= size:
                return
            shutil.rmtree(self._place(before.case), ignore_errors=True)
            before.case, before.outcome, before.n_bytes = case, outcome, size
        else:
            self.by_cause[key] = Finding(case, outcome, size)
        self._save(case, outcome, files)

    def _place(self, case: Case) -> Path:
        return self.folder / f"{case.format}-{case.seed}-{case.number}"

    def _save(self, case: Case, outcome: Outcome, files: Path) -> None:
        place = self._place(case)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(files, place / "input", symlinks=True)
        said = {"again": str(case), "kind": outcome.kind, "cause": outcome.cause, "detail": outcome.detail}
        (place / "finding.json").write_text(json.dumps(said, indent=1) + "\n", "utf-8", "backslashreplace")

    def __str__(self) -> str:
        """A line per cause, and a table with a row per format."""
        lines = []
        for (name, kind, cause), finding in sorted(self.by_cause.items()):
            lines += [f"{name}: {kind}: {cause} ({finding.n} inputs). Again: python -m fuzzing {finding.case}"]
            lines += [f"    {finding.outcome.detail.strip().splitlines()[-1][:200]}"] if finding.outcome.detail else []
        lines += ["", f"{'format':<12}{'inputs':>8}{'accepted':>10}{'refused':>9}{'findings':>10}"]
        total: Counter[str] = Counter()
        for name, counts in self.counts.items():
            lines.append(_row(name, counts))
            total += counts
        return "\n".join([*lines, _row("all", total)])


def _row(name: str, counts: Counter[str]) -> str:
    n, fine = sum(counts.values()), counts["accepted"] + counts["refused"]
    return f"{name:<12}{n:>8}{counts['accepted']:>10}{counts['refused']:>9}{n - fine:>10}"
