"""Brings results of ``lesioncount reproduce`` into the documents, so that no number is typed by hand.

``python docs/building/reproduced.py results/`` copies them to docs/reproduce, and fills the tables of the pages;
without a folder, it fills them from what is there. A table stands between ``<!-- NAME -->`` and ``<!-- /NAME -->``.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lesioncount_reproduction.experiments.result import Result, Table, load_results
from lesioncount_reproduction.experiments.verdicts import claims_table, summary_table

DOCS = Path(__file__).resolve().parents[1]
KEPT = DOCS / "reproduce"
PAGES = ("reproduce.md", "which-count.md")
SETS = ("synthetic", "leaf", "nuclei")

Results = Sequence[Result]


def main() -> None:
    """Copy, if a folder is given, and fill."""
    if len(sys.argv) > 1:
        copy(Path(sys.argv[1]))
    results = load_results(KEPT)
    (KEPT / "claims.md").write_text(claims_page(results), "utf-8")
    for name in PAGES:
        page = DOCS / name
        page.write_text(filled(page.read_text("utf-8"), results), "utf-8")


def copy(folder: Path) -> None:
    """Take over numbers, tables and figures of each experiment; experiments that the folder does not have stay."""
    for result in load_results(folder):
        name = f"{result.data_set}-{result.experiment}"
        for old in (KEPT / "figures").glob(f"{name}-*.svg"):
            old.unlink()
        for path in (folder / f"{name}.json", folder / f"{name}.md", *(folder / "figures").glob(f"{name}-*.svg")):
            shutil.copy(path, KEPT / path.relative_to(folder))


def filled(text: str, results: Results) -> str:
    """A page with its tables as the results have them."""

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!-- {name} -->\n{BLOCKS[name](results).strip()}\n<!-- /{name} -->"

    return re.sub(r"<!-- ([A-Z-]+) -->\n.*?<!-- /\1 -->", fill, text, flags=re.DOTALL)


def _table(results: Results, data_set: str, experiment: str, name: str) -> Table | None:
    for result in results:
        if (result.data_set, result.experiment) == (data_set, experiment):
            return next((table for table in result.tables if table.name == name), None)
    return None


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]], n_text: int = 1) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * n_text + "---:|" * (len(head) - n_text)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _beside(results: Results, experiment: str, name: str, columns: Sequence[str], sets: Sequence[str]) -> str:
    """Some columns of the same table on several data sets, side by side."""
    tables = {data_set: found for data_set in sets if (found := _table(results, data_set, experiment, name))}
    head, cells = [""], dict[str, list[str]]()
    for data_set, table in tables.items():
        places = [i for i, column in enumerate(table.columns) if column.head in columns]
        names = [table.columns[i].head for i in places]
        head += [f"{data_set}: {names[0]}", *names[1:]]
        for row, texts in zip(table.rows, table.texts, strict=True):
            cells.setdefault(str(row[0]), []).extend(texts[i] for i in places)
    return _rows(head, [[name, *of] for name, of in cells.items()])


def _attacks(results: Results) -> str:
    found = []
    for data_set in SETS:
        table = _table(results, data_set, "adversarial", "adversarial")
        if table is None:
            continue
        rate = [column.head for column in table.columns].index("success rate, %")
        rows: dict[str, dict[float, str]] = {}
        paper: dict[str, str] = {}
        for row, texts in zip(table.rows, table.texts, strict=True):
            rows.setdefault(str(row[1]), {})[float(str(row[0]))] = texts[rate]
            if row[0] == 0.5:
                paper[str(row[1])] = texts[-1] or "–"
        weights = sorted({float(str(row[0])) for row in table.rows})
        head = [data_set, *(f"λ = {weight:g}" for weight in weights), "paper, λ = 0.5"]
        found.append(_rows(head, [[name, *(of.get(w, "") for w in weights), paper[name]] for name, of in rows.items()]))
    return "\n\n".join(found)


def _trained(results: Results, experiment: str) -> str:
    rows = []
    for data_set in SETS:
        table = _table(results, data_set, experiment, "trained")
        rows += [[data_set, *texts] for texts in table.texts] if table else []
    return _rows(
        ["", "head", "epochs", "fall of the score, %", "accuracy minus most frequent count, points", "trained"], rows, 2
    )


def _against(results: Results) -> str:
    """What is calibrated minus tuned components and the regression, on every data set."""
    rows = []
    for data_set in (*SETS, "lidc"):
        table = _table(results, data_set, "which", "differences")
        if table is not None:
            rows += [
                [f"{data_set}, {texts[0]}", *texts[1:]]
                for texts in table.texts
                if re.search("tuned|regression", texts[0])
            ]
    return _rows(
        [
            "calibrated peaks, or candidates of the detector, minus",
            "RPS",
            "mean error",
            "exact, points",
            "right class, points",
        ],
        rows,
    )


_WAYS = ("RPS", "mean error", "in 90 % interval, %")

BLOCKS: dict[str, Callable[[Results], str]] = {
    "CLAIMS": lambda results: "\n".join(summary_table(results).to_markdown().splitlines()[2:]),
    "TRAINED": lambda results: _trained(results, "multitask"),
    "ADVTABLE": _attacks,
    "AGAINST": _against,
    "WHICH": lambda results: _beside(results, "which", "which", _WAYS, SETS),
    "WHICH-DETECTED": lambda results: _beside(results, "which", "which", _WAYS, ("lidc",)),
}


def claims_page(results: Results) -> str:
    """What ``claims.md`` says."""
    return "\n".join(of(results).to_markdown() for of in (summary_table, claims_table))


if __name__ == "__main__":
    main()
