"""Small things that cost trust: typing errors, missing packages, long names, stops, and warnings by the dozen."""

import io
import re
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from lesioncount import PoissonBinomial
from lesioncount.cli import main
from lesioncount.cli.count import summary_of
from lesioncount.cli.printing import shortened
from lesioncount.errors import MapFileError, reason_of
from lesioncount.runs import read_results
from lesioncount.trust.scores import nll
from lesioncount.trust.scores.predictions import Predictions


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture
def binary(tmp_path):
    """A dozen maps of zeros and ones."""
    (tmp_path / "maps").mkdir()
    for number in range(12):
        probabilities = np.zeros((6, 8), np.float32)
        probabilities[2:4, 3] = 1
        np.save(tmp_path / "maps" / f"s{number:02}.npy", probabilities)
    return tmp_path / "maps"


@pytest.mark.parametrize(
    ("line", "usage", "message"),
    [
        ("conut maps -o out", "lesioncount", "there is no command 'conut'. Did you mean count?"),
        ("xyz", "lesioncount", "there is no command 'xyz'. Commands are count, compare, evaluate"),
        ("count maps -o out --threshhold 3", "lesioncount count", "no option --threshhold. Did you mean --threshold?"),
        ("count maps -o out --jobz=3", "lesioncount count", "no option --jobz. Did you mean --jobs?"),
        (
            "evaluate out --trut-counts x -o e",
            "lesioncount evaluate",
            "no option --trut-counts. Did you mean --truth-co",
        ),
        ("inspect a b", "lesioncount inspect", "there is nothing that 'b' could be for"),
        ("protocols --xyzzy", "lesioncount protocols", "there is no option --xyzzy.\n"),
    ],
)
def test_typing_errors_say_what_was_meant_in_two_lines(line, usage, message, capsys):
    with pytest.raises(SystemExit) as left:
        run(*line.split())
    assert left.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"{usage}: error: ")
    assert shown.endswith(f"\nFor help: {usage} --help\n")
    assert len(shown.splitlines()) == 2
    assert message in shown


def test_short_options(binary, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        run("-V")
    assert left.value.code == 0
    assert re.match(r"lesioncount \d", capsys.readouterr().out)
    assert run("count", binary, "-o", tmp_path / "out", "-j", 2, "-v") == 0
    shown = capsys.readouterr()
    assert all(f"s{number:02} " in shown.out for number in range(12))
    assert re.search(r"^lesioncount .*, Python .*, numpy ", shown.err)
    assert len(re.findall(r"^\d+/12 s\d\d ok$", shown.err, re.MULTILINE)) == 12
    assert run("inspect", tmp_path / "nowhere.npy", "--verbose") == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_warning_about_many_maps_is_given_once_with_their_number(binary, tmp_path, capfd):
    assert run("count", binary, "-o", tmp_path / "out", "--jobs", 2, "--report") == 0
    shown = "".join(capfd.readouterr())
    assert shown.count("single point") == 1
    assert "warning: 12 of 12 scans: This map is binary" in shown
    assert (tmp_path / "out" / "report.html").read_text("utf-8").count("single point") == 1


@pytest.fixture
def without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("without_matplotlib")
def test_a_report_that_cannot_be_written_is_said_before_counting(binary, tmp_path, capsys):
    assert run("count", binary, "-o", tmp_path / "out", "--report") == 2
    shown = capsys.readouterr()
    assert "needs the package matplotlib, which is not installed: pip install '.[report]' in the clone" in shown.err
    assert "s00" not in shown.out + shown.err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_matplotlib")
def test_evaluate_says_first_that_there_will_be_no_page(binary, tmp_path, capsys):
    assert run("count", binary, "-o", tmp_path / "out", "--quiet") == 0
    (tmp_path / "counts.csv").write_text("scan,count\n" + "".join(f"s{number:02},1\n" for number in range(12)))
    assert run("evaluate", tmp_path / "out", "--truth-counts", tmp_path / "counts.csv", "-o", tmp_path / "eval") == 0
    shown = capsys.readouterr()
    assert shown.err.startswith(
        "note: There will be no evaluation.html. Writing the report needs the package matplotlib"
    )
    assert not re.search(r"\.\.(\s|$)", shown.out + shown.err)
    assert (tmp_path / "eval" / "scores.tsv").exists()


@pytest.mark.parametrize(
    "line",
    [
        "count nowhere -o out",
        "count maps -o out --mask nowhere",
        "count maps -o out --calibration nowhere",
        "count maps -o out --protocol no/where.json",
        "count --members maps nowhere -o out",
        "evaluate nowhere --truth maps -o eval",
        "evaluate done --truth nowhere -o eval",
        "evaluate done --truth-counts nowhere -o eval",
        "calibrate done --truth-counts nowhere -o c.json",
        "inspect nowhere",
        "train nowhere -o net",
        "predict nowhere maps -o maps2",
        "count maps -o done",
    ],
)
def test_what_is_not_there_is_said_in_a_sentence_with_one_stop_and_no_number(line, binary, monkeypatch, capsys):
    monkeypatch.chdir(binary.parent)
    assert run("count", "maps", "-o", "done", "--quiet") == 0
    assert run(*line.split()) == 2
    shown = capsys.readouterr().err
    assert "Errno" not in shown
    assert not re.search(r"\.\.(\s|$)", shown)
    assert shown.startswith("lesioncount: ")


def test_reasons_go_on_in_a_sentence():
    assert reason_of(FileNotFoundError(2, "No such file or directory")) == "No such file or directory"
    assert reason_of(MapFileError("It matches no file.")) == "It matches no file"
    assert reason_of(ValueError()) == "ValueError"


@pytest.mark.parametrize("width", [70, 80, 120])
def test_long_names_do_not_wrap_the_table(binary, tmp_path, width):
    long = "sub-" + "0123456789" * 6 + "_ses-01_probseg"
    shutil.copy(binary / "s00.npy", tmp_path / f"{long}.npy")
    run("count", tmp_path / f"{long}.npy", binary, "-o", tmp_path / "out", "--quiet")
    results = read_results(tmp_path / "out")
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(summary_of(results, shown=5).table(width))
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) <= width + 3
    assert re.match(r"sub-\S*…\S*seg .* 1 to 1 *$", lines[1])


def test_names_lose_their_middle():
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcde…hijk"


def test_the_log_score_of_a_sure_count_is_zero_and_not_less():
    sure = np.array([[np.nextafter(1.0, 2.0), 0.0]])
    assert str(nll(sure, [0])[0]) == "0.0"
    predictions = Predictions.of_distributions([PoissonBinomial([1.0, 0.3, 0.7, 0.5])] * 3, [2, 2, 2])
    certain = replace(predictions, p_truth=np.full(3, np.nextafter(1.0, 2.0)))
    assert certain.means["nll"].tolist() == [0, 0, 0]
