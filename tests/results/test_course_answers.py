"""Questions that are asked of all pairs of a comparison: records, tables, calibrations."""

import csv
import json

import pytest
from two_visits import VISITS, a_map, write_visits

import lesioncount as lc
from lesioncount.errors import MapFileError, QuestionError
from lesioncount.questions import Question
from lesioncount.results.record import read_record
from lesioncount.runs import ChangeSettings, compare_batch, read_changes
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit

ASKED = ("new >= 1", "new > gone", "count >= 2")


def settings(*questions, **options):
    return ChangeSettings(questions=tuple(map(Question.asked, questions or ASKED)), **options)


def calibrated(*kinds):
    """Calibrations with all that one can have."""
    return tuple(
        CalibrationFit(Calibration(0.9, -0.3, 0.2, 0.1, 1.0, 0.5, coupling=3.0, counted=kind)) for kind in kinds
    )


@pytest.fixture
def maps(tmp_path):
    return write_visits(tmp_path)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_each_pair_has_an_answer_to_each_question(maps, tmp_path):
    out = tmp_path / "out"
    results = compare_batch(maps, out, settings=settings())
    table = rows_of(out / "answers.tsv")
    assert list(table[0]) == ["pair", "patient", "participant_id", "question", "probability"]
    assert [(row["pair"], row["question"]) for row in table] == [(name, text) for name in VISITS for text in ASKED]
    for row in table:
        changes = lc.compare(*map(a_map, VISITS[row["pair"]]), spacing_mm=(1, 1, 3))
        assert float(row["probability"]) == pytest.approx(changes.ask(row["question"]), abs=1e-5)
    (pair,) = results.courses[0].pairs
    assert [answer.question for answer in pair.answers] == list(ASKED)


def test_records_hold_them(maps, tmp_path):
    out = tmp_path / "out"
    results = compare_batch(maps, out, settings=settings())
    assert read_changes(out).courses[0].pairs[0].answers == results.courses[0].pairs[0].answers
    content = json.loads((out / "sub-01.json").read_text())
    assert content["settings"]["questions"] == list(ASKED)
    assert set(content["pairs"][0]["answers"][0]) == {"question", "probability"}
    content["pairs"][0]["answers"][0]["probability"] = 1.5
    (out / "sub-01.json").write_text(json.dumps(content))
    assert read_record(out, "sub-01") is None


def test_answers_agree_with_the_calibrated_numbers(maps, tmp_path):
    fits = calibrated("new", "gone", "persisting")
    asked = ("new >= 1", "gone >= 1", "persisting >= 1", "new >= 1 and gone >= 1")
    results = compare_batch(maps, tmp_path / "out", settings=settings(*asked, calibrations=fits))
    for course in results.compared:
        (pair,) = course.pairs
        new, gone, persisting, both = (answer.probability_calibrated for answer in pair.answers)
        for kind, answer in (("new", new), ("gone", gone), ("persisting", persisting)):
            assert answer == pytest.approx(1 - pair.counts[kind].pmf_calibrated[0], abs=1e-9)
        assert both == pytest.approx(new * gone, abs=1e-9)
        assert pair.answers[0].best != pytest.approx(pair.answers[0].probability, abs=1e-3)


def test_answers_are_calibrated_only_if_all_that_is_asked_for_is(maps, tmp_path):
    out = tmp_path / "out"
    compare_batch(maps, out, settings=settings(calibrations=calibrated("new")))
    first, second, third = rows_of(out / "answers.tsv")[:3]
    assert float(first["probability_calibrated"]) > 0
    assert second["probability_calibrated"] == third["probability_calibrated"] == "n/a"


def test_other_questions_are_another_run(maps, tmp_path):
    out = tmp_path / "out"
    compare_batch(maps, out, settings=settings())
    (out / "sub-01.json").touch()
    before = (out / "sub-02.json").stat().st_mtime_ns
    compare_batch(maps, out, settings=settings(), resume=True)
    assert (out / "sub-02.json").stat().st_mtime_ns == before
    with pytest.raises(MapFileError, match=r"questions is .*gone == 0"):
        compare_batch(maps, out, settings=settings("gone = 0"), resume=True)
    compare_batch(maps, out, settings=settings("gone = 0"), overwrite=True)
    assert {row["question"] for row in rows_of(out / "answers.tsv")} == {"gone == 0"}
    compare_batch(maps, out, overwrite=True)
    assert not (out / "answers.tsv").exists()


@pytest.mark.parametrize("text", ["periventricular >= 1", "mcdonald2017-dis", "mcdonald2001-dis"])
def test_questions_about_regions_are_refused_before_anything_is_compared(text, maps, tmp_path):
    with pytest.raises(QuestionError, match="not counted here"):
        compare_batch(maps, tmp_path / "out", settings=settings("new >= 1", text))
    assert not (tmp_path / "out").exists()
