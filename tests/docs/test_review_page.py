"""The page about reviews, followed on the demo by a simulated reader who knows the truth."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from review_cohort import SimulatedReader

from lesioncount import demo
from lesioncount.assess.beside_truth import TruthOptions, compare
from lesioncount.cli import main
from lesioncount.results.results import read_counted

ROOT = Path(__file__).resolve().parents[2]


def _commands():
    (block,) = re.findall(
        r"^```console\n(.*?)^```", (ROOT / "docs" / "review.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


def _review_as_is_true(out, n_scans, rng):
    """Review scans at random: accept what is a lesion, say how many, and add what has no candidate."""
    results = read_counted(out)
    compared = compare(results.of(), TruthOptions(masks=(Path("masks"),)), read_maps=True)
    reader, counts = SimulatedReader(results, "Anna"), {}
    for place in rng.permutation(len(compared.scans))[:n_scans]:
        scan, match = compared.scans[place].name, compared.truths[place].matches["masks"]
        lesions = np.zeros(len(match.owns), int)
        _, first = np.unique(match.pairs[:, 1], return_index=True)
        np.add.at(lesions, match.pairs[first, 0], 1)
        for label, n in enumerate(lesions.tolist(), start=1):
            reader.decide(scan, label, ("none", "lesion", "several")[min(n, 2)], max(n, 1))
        for number in range(match.n_lesions - int(lesions.sum())):
            reader.add(scan, (number, 0, 0))
        reader.done(scan)
        counts[scan] = match.n_lesions
    return counts


def test_every_command_can_be_followed_on_the_demo(tmp_path, monkeypatch, rng, capsys):
    demo.write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    truth, printed = {}, ""
    for command in _commands():
        if command[0] == "review" and "--export" not in command:
            truth = _review_as_is_true(Path(command[1]), 40, rng)
        else:
            assert main(command) == 0, (command, capsys.readouterr().err)
            printed += capsys.readouterr().out
    assert len(truth) == 40
    rows = [line.split("\t") for line in Path("out_new/reviewed_counts.tsv").read_text().splitlines()]
    table = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    assert {row["scan"]: int(row["count_mode"]) for row in table if row["complete"] == "yes"} == truth
    assert "Reviewed by Anna: 40 scans, 40 completely." in printed


@pytest.fixture
def worth():
    """The benchmark of reviews, as a module."""
    spec = importlib.util.spec_from_file_location("review_benchmark", ROOT / "benchmarks" / "review.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_our_order_of_candidates_needs_the_fewest_decisions_on_the_demo(tmp_path, worth, rng):
    demo.write_samples(tmp_path)
    assert main(["count", str(tmp_path / "probs"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    scans = worth.scans_in_results(tmp_path / "out", tmp_path / "masks", "")
    number = np.concatenate([np.full(len(scan.peaks), place) for place, scan in enumerate(scans)])
    p = np.concatenate([scan.peaks for scan in scans])
    loss = np.concatenate([worth._count(scan).loss_of_variance for scan in scans])
    mean_error = {
        name: np.mean([worth.errors(scans, rank(number, p, loss))[:, 1].mean() for _ in range(5)])
        for name, rank in worth.orders(rng).items()
    }
    ours = mean_error.pop("ours: expected loss of variance")
    assert ours < 0.9 * min(mean_error.values())
