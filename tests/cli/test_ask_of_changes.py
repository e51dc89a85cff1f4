"""``lesioncount compare --ask``: what is printed, and what is refused."""

import pytest
from two_visits import write_visits

from lesioncount.cli import main
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit


@pytest.fixture
def compare(tmp_path, monkeypatch):
    """The command, on maps of three patients."""
    monkeypatch.chdir(tmp_path)
    write_visits(tmp_path)
    return lambda *options: main(["compare", "before", "after", "-o", "out", *options])


def test_answers_are_printed_and_written(compare, tmp_path, capsys):
    asked = ("new >= 1", "new>=1", "count >= 2 and (persisting >= 1 or gone = 0)")
    assert compare(*(word for text in asked for word in ("--ask", text))) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "question 2: count >= 2 and (persisting >= 1 or gone == 0)" in shown
    head = shown.index("probability of  new >= 1  question 2")
    assert [line.split()[0] for line in shown[head + 1 : head + 4]] == ["sub-01", "sub-02", "sub-03"]
    assert shown[head + 3].split()[1:] == ["0.000", "0.000"]
    assert len((tmp_path / "out" / "answers.tsv").read_text().splitlines()) == 1 + 2 * 3


def test_what_is_not_calibrated_is_said(compare, tmp_path, capsys):
    CalibrationFit(Calibration(0.9, counted="new")).save(tmp_path / "new.json")
    assert compare("--ask", "new >= 1", "--calibration", "new.json") == 0
    shown = capsys.readouterr().out
    assert "calibrated probability of  new >= 1" in shown
    assert "as the maps have it" not in shown
    assert compare("--ask", "new >= 1", "--ask", "new > gone", "--calibration", "new.json", "--overwrite") == 0
    shown = capsys.readouterr().out
    assert "\nprobability of  new >= 1  new > gone\n" in shown
    note = "note: 'new > gone' is answered as the maps have it: not all that it asks for was calibrated, only new\n"
    assert note in shown
    assert "note: 'new >= 1'" not in shown


def test_nothing_is_compared_for_a_question_that_cannot_be_answered(compare, tmp_path, capsys):
    assert compare("--ask", "juxtacortical >= 1") == 2
    assert "asks for juxtacortical, which is not counted here" in capsys.readouterr().err
    assert compare("--ask", "new >=") == 2
    assert not (tmp_path / "out").exists()
