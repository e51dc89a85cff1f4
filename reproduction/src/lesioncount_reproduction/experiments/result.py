"""What an experiment found: tables, figures and verdicts on claims, as text, files and JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from msgspec import convert, to_builtins

from lesioncount.errors import ExperimentError, reason_of
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import read_json, to_json
from lesioncount.report.drawing import Figure
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.claims import Claim, Evidence
from lesioncount_reproduction.experiments.estimates import Samples, estimates_of
from lesioncount_reproduction.experiments.numerals import written

FORMAT_VERSION = 3

# Before version 3, no evidence was left untested.
_READABLE = (2, FORMAT_VERSION)

# In the order of the paper; the last is ours.
EXPERIMENT_NAMES = ("threshold", "calibration", "uncertainty", "multitask", "lowdata", "adversarial", "which")

# At the end of a drawing in a file; it is not part of the drawing.
_CHECKSUM = re.compile(r"<!-- checksum: [0-9a-f]{64} -->\n?\Z")

Cell = str | float | int | Estimate | None
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table: its head, and how its numbers are written."""

    head: str
    kind: str = "text"

    def text(self, cell: Cell) -> str:
        """A cell as it is read."""
        if isinstance(cell, str):
            return cell
        return "–" if cell is None else written(cell, self.kind)

    def value(self, cell: Cell) -> str:
        """The same without the interval."""
        return self.text(cell.value if isinstance(cell, Estimate) else cell)

    def interval(self, cell: Cell) -> str:
        """The interval alone."""
        return self.text(cell)[len(self.value(cell)) :].strip()

    def seeds(self, cell: Cell) -> str:
        """The values of single seeds, where there are several."""
        if not isinstance(cell, Estimate) or len(cell.seeds) < 2:
            return ""
        return ", ".join(written(value, self.kind) for value in cell.seeds)


@dataclass(frozen=True)
class Table:
    """Rows of names and numbers.

    Attributes
    ----------
    name : str
        Of its file.
    title : str
    columns : tuple of Column
    rows : tuple of tuple of Cell
    note : str
        What a reader needs to know.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @classmethod
    def of_scores(
        cls,
        name: str,
        title: str,
        scores: Mapping[str, Column],
        rows: Mapping[str, Mapping[str, Samples]],
        note: str = "",
    ) -> Self:
        """A row for each method, and a column for each of some scores."""
        found: tuple[Row, ...] = tuple((method, *estimates_of(samples, scores)) for method, samples in rows.items())
        return cls(name, title, (Column("method"), *scores.values()), found, note)

    @property
    def texts(self) -> list[list[str]]:
        """Cells as they are read."""
        return [[column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows]

    def to_markdown(self) -> str:
        """As text that reads well, and that web sites show as a table."""
        lines = ["| " + " | ".join(column.head for column in self.columns) + " |"]
        lines.append("|" + "|".join("---" if column.kind == "text" else "---:" for column in self.columns) + "|")
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.texts]
        note = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n" + "\n".join(lines) + note + "\n"

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note,
            "columns": [{"head": column.head, "kind": column.kind} for column in self.columns],
            "rows": [[to_builtins(cell) if isinstance(cell, Estimate) else cell for cell in row] for row in self.rows],
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """From plain values."""
        columns = tuple(Column(**column) for column in content["columns"])
        rows = tuple(
            tuple(convert(cell, Estimate) if isinstance(cell, dict) else cell for cell in row)
            for row in content["rows"]
        )
        found = cls(content["name"], content["title"], columns, rows, content["note"])
        if any(len(row) != len(columns) for row in rows):
            raise ValueError(f"a row of the table {found.name!r} does not have as many cells as there are columns")
        _ = found.texts  # a kind of column, or a cell, that cannot be written shows here
        return found


@dataclass(frozen=True)
class Result:
    """What an experiment found on a data set.

    Attributes
    ----------
    experiment, data_set, preset : str
    n_scans, n_patients : int
        That it was tested on.
    seeds : tuple of int
        Of trainings.
    tables : tuple of Table
    figures : tuple of Figure
    claims : tuple of Claim
    """

    experiment: str
    data_set: str
    preset: str
    n_scans: int
    n_patients: int
    seeds: tuple[int, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = field(default=(), repr=False)
    claims: tuple[Claim, ...] = ()

    @property
    def basis(self) -> str:
        """What the numbers stand on, in words."""
        seeds = f", {len(self.seeds)} training seed{'s' if len(self.seeds) > 1 else ''}" if self.seeds else ""
        return f"{self.n_scans} test scans of {self.n_patients} patients{seeds}"

    def claim(self, number: int, *evidence: Evidence, remark: str = "") -> Claim:
        """A claim of the paper, tested on these data."""
        return Claim(number, self.data_set, evidence, self.basis, remark)

    def with_claims(self, *claims: Claim) -> Self:
        """With verdicts on claims."""
        return replace(self, claims=claims)

    def save(self, folder: Path) -> None:
        """Write JSON, tables as text and figures as files. Only files of earlier results are replaced."""
        files, stem = OutputFolder(folder), f"{self.data_set}-{self.experiment}"
        content = {
            "format": FORMAT_VERSION,
            **{name: getattr(self, name) for name in ("experiment", "data_set", "preset", "n_scans", "n_patients")},
            "seeds": list(self.seeds),
            "tables": [table.to_dict() for table in self.tables],
            "claims": [claim.to_dict() for claim in self.claims],
            "figures": [{"name": figure.name, "label": figure.label} for figure in self.figures],
        }
        text = f"# {self.experiment}, {self.data_set}\n\n{self.basis}.\n\n"
        with files.alone():
            for figure in self.figures:
                files.write_text(f"figures/{stem}-{figure.name}.svg", on_white(figure.file))
            files.write_text(f"{stem}.json", to_json(content))
            files.write_text(f"{stem}.md", text + "\n".join(table.to_markdown() for table in self.tables))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        try:
            content = _checked(read_json(path))
            stem = path.stem
            figures = tuple(
                Figure(one["name"], one["label"], _drawing(path.parent / "figures", stem, one["name"]))
                for one in content["figures"]
            )
            return cls(
                **{name: content[name] for name in ("experiment", "data_set", "preset", "n_scans", "n_patients")},
                seeds=tuple(content["seeds"]),
                tables=tuple(Table.from_dict(table) for table in content["tables"]),
                figures=figures,
                claims=tuple(Claim.from_dict(claim) for claim in content["claims"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ExperimentError(f"{path} is not a result of lesioncount reproduce: {reason_of(error)}.") from None


def load_results(folder: Path) -> list[Result]:
    """All results in a folder."""
    found = [Result.load(path) for name in EXPERIMENT_NAMES for path in sorted(folder.glob(f"*-{name}.json"))]
    if not found:
        raise ExperimentError(f"There are no results of lesioncount reproduce in {folder}.")
    return found


def names_of(data_set: str, experiment: str) -> tuple[str, ...]:
    """The files that results are written to, but for figures."""
    return tuple(f"{data_set}-{experiment}{ending}" for ending in (".json", ".md"))


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    if content["format"] not in _READABLE:
        raise ValueError(f"expected format {' or '.join(map(str, _READABLE))}, but it is {content['format']!r}")
    if content["experiment"] not in EXPERIMENT_NAMES:
        raise ValueError(f"there is no experiment {content['experiment']!r}")
    return content


def on_white(document: str) -> str:
    """An SVG that is legible on dark pages as well."""
    return document.replace("<defs>", '<rect width="100%" height="100%" fill="#ffffff"/>\n <defs>', 1)


def _drawing(folder: Path, stem: str, name: str) -> str:
    """A figure of these results, and no other file."""
    if re.fullmatch(r"[a-z0-9-]+", name) is None:
        raise ValueError(f"{name!r} is not the name of a figure")
    return _CHECKSUM.sub("", (folder / f"{stem}-{name}.svg").read_text("utf-8"))
