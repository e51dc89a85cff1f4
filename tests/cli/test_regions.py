"""Regions and questions as people type them."""

import csv
import json

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main
from lesioncount.questions import QUESTIONS
from lesioncount.results.answers import ANSWER_COLUMNS
from lesioncount.results.region_numbers import REGION_COLUMNS

SHAPE = (8, 9, 10)


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture
def cohort(tmp_path, rng):
    """Maps of two patients, an atlas and its names."""
    for sub in ("01", "02"):
        p = (rng.random(SHAPE) * (rng.random(SHAPE) < 0.08)).astype(np.float32)
        save(tmp_path / "probs" / f"sub-{sub}_ses-1_probseg.nii.gz", p)
    labels = np.zeros(SHAPE, dtype=np.uint8)
    labels[:4, 1:], labels[4:, 1:], labels[3:5, 4:6, 4:6] = 1, 2, 3
    save(tmp_path / "atlas.nii.gz", labels)
    (tmp_path / "names.tsv").write_text("index\tname\n1\tjuxtacortical\n2\tinfratentorial\n3\tventricles\n")
    return tmp_path


def count(cohort, *options):
    arguments = ["count", str(cohort / "probs"), "-o", str(cohort / "out"), "--overwrite", *options]
    return main([argument.replace("COHORT", str(cohort)) for argument in arguments])


REGIONS = ("--regions", "COHORT/atlas.nii.gz", "--region-names", "COHORT/names.tsv")
WITHIN = ("--within", "periventricular = ventricles <= 3mm", "--within", "ventricles <= 1mm")


def test_regions_have_a_table_of_their_own(cohort):
    assert count(cohort, *REGIONS, *WITHIN) == 0
    table = rows(cohort / "out" / "regions.tsv")
    assert list(table[0]) == [name for name in REGION_COLUMNS if not name.endswith("_calibrated")]
    names = ["juxtacortical", "infratentorial", "ventricles", "outside", "periventricular", "ventricles<=1mm"]
    assert [row["region"] for row in table] == names * 2
    assert {row["participant_id"] for row in table} == {"sub-01", "sub-02"}
    lesions = rows(cohort / "out" / "lesions.tsv")
    for row in table[:4]:
        mine = [
            float(one["existence"]) for one in lesions if one["scan"] == row["scan"] and one["region"] == row["region"]
        ]
        assert len(mine) == int(row["n_candidates"])
        assert sum(mine) == pytest.approx(float(row["count_mean"]), rel=1e-4)
        assert 1 - np.prod(1 - np.array(mine)) == pytest.approx(float(row["p_1plus"]), rel=1e-4, abs=1e-6)
    near = [one for one in lesions if one["within"] != "n/a"]
    assert {one["within"] for one in near} <= {"periventricular", "periventricular; ventricles<=1mm"}
    assert all(0 <= float(mm) <= 3 for one in near for mm in one["within_mm"].split("; "))
    assert json.loads((cohort / "out" / "run.json").read_text())["settings"]["regions"]["within"] == [
        "periventricular = ventricles <= 3 mm", '"ventricles<=1mm" = ventricles <= 1 mm',
    ]  # fmt: skip


def test_questions_are_answered_in_a_table_and_on_the_console(cohort, capsys):
    question = "periventricular >= 1 and (juxtacortical >= 3 or infratentorial >= 1)"
    asked = ("--ask", "mcdonald2017-dis", "--ask", "count >= 18", "--ask", question, "--ask", "count>=18")
    assert count(cohort, *REGIONS, *WITHIN, *asked, "--ask", "mcdonald2010-dis") == 0
    table = rows(cohort / "out" / "answers.tsv")
    of_answers = [name for name in ANSWER_COLUMNS if name != "probability_calibrated"]
    assert list(table[0]) == ["scan", "participant_id", "session_id", *of_answers]
    assert [(row["question"], row["name"]) for row in table[:4]] == [
        (QUESTIONS["mcdonald2017-dis"].text, "mcdonald2017-dis"), ("count >= 18", "n/a"), (question, "n/a"),
        (QUESTIONS["mcdonald2010-dis"].text, "mcdonald2010-dis"),
    ]  # fmt: skip
    assert [row["missing"] for row in table[:4]] == ["spinal_cord", "n/a", "n/a", "spinal_cord"]
    counts = rows(cohort / "out" / "counts.tsv")
    assert len(table) == 4 * len(counts)
    shown = capsys.readouterr().out
    assert f"question 3: {question}" in shown
    assert "probability of" in shown
    assert "mcdonald2017-dis was asked without spinal_cord" in shown
    assert "the probability is a lower bound" in shown
    told = next(line for line in shown.splitlines() if line.startswith("probability of"))
    assert told.split("  ")[-1] == "mcdonald2010-dis"
    numbers = shown.splitlines()[shown.splitlines().index(told) + 1].split()
    assert numbers[0] == "sub-01_ses-1_probseg"
    assert f"{float(table[1]['probability']):.3f}" in numbers


def test_calibrated_answers_stand_beside_raw_ones(cohort, capsys):
    assert main(["calibrate", "--positive-weight", "3", "-o", str(cohort / "cal.json")]) == 0
    assert (
        count(cohort, "--ask", "count >= 14", "--ask", "count >= 1", "--calibration", "COHORT/cal.json", *REGIONS) == 0
    )
    for row in rows(cohort / "out" / "answers.tsv")[::2]:
        assert float(row["probability_calibrated"]) < float(row["probability"])
    for row in rows(cohort / "out" / "regions.tsv"):
        assert float(row["p_1plus_calibrated"]) <= float(row["p_1plus"])
    shown = capsys.readouterr().out
    assert "calibrated probability of" in shown
    assert "> 0.999" in shown


def test_impossible_answers_are_shown_as_such(cohort, capsys):
    assert count(cohort, "--ask", "count >= 9000", "--ask", "count >= 25", "--ask", "count >= 0") == 0
    shown = capsys.readouterr().out
    assert "0.000" in shown
    assert "< 0.001" in shown
    assert "1.000" in shown


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--within", "ventricles <= 3mm"), "need a label map of the regions (--regions"),
        (("--region-names", "COHORT/names.tsv"), "need a label map of the regions (--regions"),
        ((*REGIONS, "--within", "ventricels <= 3mm"), "There is no region 'ventricels'. There are ventricles, "),
        ((*REGIONS, "--within", "ventricles < 3mm"), "nothing can begin with '<'"),
        ((*REGIONS, "--ask", "ventricle >= 1"), "asks for ventricle"),
        (("--ask", "count >="), "^"),
        (("--ask", "mcdonald2017-dis"), "not counted here"),
        (("--regions", "COHORT/none.nii.gz"), "does not exist"),
        (("--regions", "COHORT/atlas.nii.gz", "--region-names", "COHORT/none.tsv"), "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_counted(cohort, capsys, options, why):
    assert count(cohort, *options) == 2
    assert why in capsys.readouterr().err
    assert not (cohort / "out").exists()


def test_named_questions_are_listed_with_their_sources(capsys):
    assert main(["questions"]) == 0
    shown = capsys.readouterr().out
    for name, question in QUESTIONS.items():
        assert name in shown
        assert question.source in shown
    assert "none of them is a diagnosis" in shown


def test_regions_and_answers_come_from_several_processes(cohort):
    assert count(cohort, *REGIONS, *WITHIN, "--ask", "periventricular >= 1", "--jobs", "2", "--quiet") == 0
    parallel = [(cohort / "out" / name).read_text() for name in ("regions.tsv", "answers.tsv")]
    assert count(cohort, *REGIONS, *WITHIN, "--ask", "periventricular >= 1", "--quiet") == 0
    assert [(cohort / "out" / name).read_text() for name in ("regions.tsv", "answers.tsv")] == parallel
