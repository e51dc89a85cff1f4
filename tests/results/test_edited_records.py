"""A record that somebody has changed is refused by all who take its numbers, with the name of its file."""

import json
import re

import pytest
from two_kinds import COUNT, KINDS

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.errors import MapFileError
from lesioncount.report import write_report

NAMES = ("p1", "p2", "p3")
SAID = r"p2\.json was changed after it was written.*--resume"


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    return request.param


@pytest.fixture
def maps(tmp_path, kind):
    return kind.cohort(tmp_path / "maps", NAMES)


@pytest.fixture
def out(tmp_path, maps, kind):
    assert kind.run(maps, tmp_path / "out") == 0
    return tmp_path / "out"


def edit(record):
    """Make a patient healthier, as with an editor."""
    text = record.read_text()
    assert '"status": "ok"' in text
    record.write_text(re.sub(r'("n_dropped": ?)0', r"\g<1>1", text, count=1))
    assert record.read_text() != text


def reformat(record):
    record.write_text(json.dumps(json.loads(record.read_text()), indent=2))


def truth(folder):
    path = folder / "truth.tsv"
    path.write_text("scan\tcount\tarm\n" + "".join(f"{name}\t2\t{name > 'p1'}\n" for name in NAMES))
    return path


@pytest.mark.parametrize("change", [edit, reformat])
def test_an_edited_record_is_refused_by_commands(out, maps, kind, tmp_path, capsys, change):
    counts = truth(tmp_path)
    page = out / kind.page
    change(out / "p2.json")
    for command in (
        ["evaluate", str(out), "--truth-counts", str(counts), "-o", str(tmp_path / "evaluation")],
        ["calibrate", str(out), "--truth-counts", str(counts), "-o", str(tmp_path / "calibration.json")],
        ["summarize", str(out), "--by", "arm", "--participants", str(counts), "-o", str(tmp_path / "summary")],
    ):
        assert main(command) == 2, command
        assert f"{out / 'p2.json'} was changed after it was written" in capsys.readouterr().err
    assert not page.exists()
    assert kind.run(maps, out, "--resume") == 0  # which makes it again
    assert [one.name for one in lc.read_results(out).counted] == list(NAMES)


def test_an_edited_record_is_refused_from_python(out):
    results = lc.read_results(out)
    edit(out / "p2.json")
    with pytest.raises(MapFileError, match=SAID):
        lc.read_results(out)
    with pytest.raises(MapFileError, match=SAID):
        list(results.records())
    with pytest.raises(MapFileError, match=SAID):
        write_report(results)


def test_a_record_under_the_name_of_another_is_refused(out):
    text = (out / "p1.json").read_text().replace('"p1"', '"p2"')
    (out / "p2.json").write_text(text)
    with pytest.raises(MapFileError, match=SAID):
        lc.read_results(out)


def test_a_run_that_was_killed_stays_valid(tmp_path):
    maps, out = COUNT.cohort(tmp_path / "maps", NAMES), tmp_path / "out"
    assert COUNT.run(maps, out) == 0
    (out / "p3.json").unlink()
    assert COUNT.run(maps, out, "--resume") == 0
    assert [one.name for one in lc.read_results(out).counted] == list(NAMES)
