"""What guaranteed intervals are proven to hold is in records and run.json, on pages, and in the last lines."""

import json
import re

import pytest
from two_kinds import COMPARE, COUNT, KINDS

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.folder.atomic import certified
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit, KnownTruth

NAMES = ("p1", "p2")


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    return request.param


@pytest.fixture
def fit(kind, tmp_path):
    """From 20 scans, of which less is proven than is asked for."""
    if kind is COUNT:
        truth = KnownTruth.of([[0.9, 0.5]] * 20, [1, 2] * 10)
    else:
        truth = KnownTruth.of([CandidateTable.of([0.9, 0.5], other=[0.0, 0.0])] * 20, [1, 2] * 10, counted="new")
    fit = CalibrationFit.fit(truth, protocol=lc.CountingProtocol())
    fit.save(tmp_path / "calibration.json")
    return fit


def run(kind, tmp_path, *options):
    maps = kind.cohort(tmp_path / "maps", NAMES)
    arguments = kind.arguments(maps, tmp_path / "out", "--calibration", tmp_path / "calibration.json", *options)
    return main([one for one in arguments if one != "--quiet"])


def settings(path):
    return json.loads(path.read_text())["settings"]


def test_the_promise_is_recorded_shown_and_said(kind, fit, tmp_path, capsys):
    assert run(kind, tmp_path, "--interval", "conformal", "--report") == 0
    proven, of = fit.conformal.conformal.proven(0.9), "lesions" if kind is COUNT else "new"
    assert 0.8 < proven < 0.9
    for name in ("run.json", "p1.json"):
        assert settings(tmp_path / "out" / name)["proven"] == {of: proven}
    what = "scans" if kind is COUNT else "pairs"
    percent = re.search(r"[\d.]+ %", fit.conformal.promise(0.9))[0]
    words = f"Proven for new {what} like those of the calibration: {percent} or more of the true counts lie inside"
    assert capsys.readouterr().out.count(words) == 1
    page = (tmp_path / "out" / kind.page).read_text()
    assert page.count(words) == 1
    assert f"80 {what} would prove 90 %" in page


def test_nothing_is_promised_where_nothing_is_guaranteed(kind, fit, tmp_path, capsys):
    del fit
    assert run(kind, tmp_path) == 0
    assert "proven" not in settings(tmp_path / "out" / "run.json")
    assert "Proven" not in capsys.readouterr().out


def test_a_run_of_an_earlier_version_goes_on(kind, fit, tmp_path):
    """What is proven follows from the calibration, and was not recorded once."""
    del fit
    options, out = ("--interval", "conformal"), tmp_path / "out"
    assert run(kind, tmp_path, *options) == 0
    for path in (out / "run.json", out / "p1.json", out / "p2.json"):
        plain = re.sub(r',\n"checksum": "\w+"\n}\n$', "\n}\n", path.read_text())
        older = re.sub(r'"proven": ?\{[^}]*\}, ?', "", plain)
        assert older != plain
        path.write_text(certified(path.name, older))
    before = (out / "p1.json").read_bytes()
    assert run(kind, tmp_path, *options, "--resume") == 0
    assert (out / "p1.json").read_bytes() == before


def test_pairs_of_one_promise_are_said_in_one_line(tmp_path, capsys):
    table = CandidateTable.of([0.9, 0.5], other=[0.0, 0.0])
    paths = []
    for of in ("new", "gone"):
        truth = KnownTruth.of([table] * 20, [1, 2] * 10, counted=of)
        CalibrationFit.fit(truth, protocol=lc.CountingProtocol()).save(tmp_path / f"{of}.json")
        paths += ["--calibration", str(tmp_path / f"{of}.json")]
    maps = COMPARE.cohort(tmp_path / "maps", NAMES)
    assert main(["compare", *COMPARE.inputs(maps), "-o", str(tmp_path / "o"), "--interval", "conformal", *paths]) == 0
    assert "Guaranteed intervals of new and gone lesions. Proven for" in capsys.readouterr().out
