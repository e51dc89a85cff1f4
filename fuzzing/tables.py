"""Targets: tables that people write, and journals and histories to which lines are added, changed by somebody."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.cases import Target
from fuzzing.commands import command
from fuzzing.damage import damaged
from fuzzing.odd_text import odd_json, odd_text

Rng = np.random.Generator
Plan = dict[str, Any]

# Each fits the maps and results of the home folder, whose scans are called s0 to s5.
_PAIRS = "baseline\tfollowup\tparticipant_id\nmaps/s0.npy\tmaps/s1.npy\tp0\nmaps/s2.npy\tmaps/s3.npy\tp1\n"
_GROUPS = "scan\tarm\tyears\n" + "".join(f"s{i}\t{'ab'[i % 2]}\t{1 + i / 2}\n" for i in range(6))
_REGIONS = "index\tname\n1\tfrontal\n2\toccipital\n3\tpons\n"
_LABELS = "scan\tcount\tsplit\n" + "".join(f"s{i}\t{i}\ttrain\n" for i in range(6))


def changed(rng: Rng, path: Path, text: str) -> None:
    """Write a table that somebody changed: its separator, its words and numbers, or its bytes."""
    text = text.replace("\t", "\t\t,;"[int(rng.integers(4))])
    if rng.random() < 0.8:
        path.write_text(odd_text(rng, text), "utf-8", "replace")
    else:
        path.write_bytes(damaged(rng, text.encode()))


def _make(text: str, rng: Rng, home: Path, folder: Path) -> Plan:
    shutil.copytree(home / "maps", folder / "maps")  # paths are below the table
    changed(rng, folder / "table.tsv", text)
    return {"home": home}


def _pairs(folder: Path, _: Plan) -> None:
    command("compare", "--pairs", folder / "table.tsv", "-o", folder / "out", "--quiet")


def _groups(folder: Path, plan: Plan) -> None:
    options = ("--by", "arm", "--participants", folder / "table.tsv", "--exposure", "years", "--imputations", 2)
    command("summarize", plan["home"] / "results", *options, "--quiet")


def _regions(folder: Path, plan: Plan) -> None:
    options = ("--regions", plan["home"] / "regions.npy", "--region-names", folder / "table.tsv", "--quiet")
    command("count", folder / "maps" / "s0.npy", "-o", folder / "out", *options)


def _labels(folder: Path, _: Plan) -> None:
    from lesioncount.learning.label_table import LabelTable

    table = LabelTable(folder / "table.tsv")
    for i in range(6):
        label = table.label_of(f"s{i}")
        if label is not None and label.count is not None and not 0 <= label.count < 1 << 31:
            raise ValueError(f"a count of {label.count} was accepted")


def _make_lines(which: str, where: str, rng: Rng, home: Path, folder: Path) -> Plan:
    """Results of which one line of a journal or history was changed, or the whole of it."""
    shutil.copytree(home / which, folder / "results")
    path = folder / "results" / where
    lines = path.read_text("utf-8").splitlines()
    if rng.random() < 0.7:
        at = int(rng.integers(len(lines)))
        lines[at] = odd_json(rng, json.loads(lines[at]))
        path.write_text("\n".join(lines) + "\n", "utf-8", "surrogatepass")
    else:
        changed(rng, path, "\n".join(lines) + "\n")
    return {"how": int(rng.integers(3)), "maps": home / "maps"}


def _journal(folder: Path, plan: Plan) -> None:
    results, out = folder / "results", folder / "out"
    commands = (
        ("evaluate", results, "--reviews", results, "-o", out, "--counts-only"),
        ("review", results, "--export", "--no-label-maps"),
        ("count", plan["maps"], "-o", out, "--reviews", results, "--reader", "ann"),
    )
    command(*commands[plan["how"]], "--quiet")


def _history(folder: Path, plan: Plan) -> None:
    how = ("--resume", "--overwrite", "--resume")[plan["how"]]
    command("count", plan["maps"], "-o", folder / "results", how, "--quiet")


def _target(text: str, handle: Callable[[Path, Plan], None]) -> Target:
    return Target(partial(_make, text), handle)


TABLES = {
    "pairs": _target(_PAIRS, _pairs),
    "groups": _target(_GROUPS, _groups),
    "regions": _target(_REGIONS, _regions),
    "labels": _target(_LABELS, _labels),
    "journal": Target(partial(_make_lines, "results", "reviews/ann.jsonl"), _journal),
    "history": Target(partial(_make_lines, "plain", "runs.jsonl"), _history),
}
