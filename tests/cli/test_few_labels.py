"""A stated mean, a list with a promise, a check, and scans unlike those of a calibration: on the command line."""

import csv
import html
import json
import re
from importlib.resources import files
from pathlib import Path

import nibabel
import numpy as np
import pytest

from lesioncount.cli import main
from lesioncount.trust.fitting.lists import ListRule

SAMPLES = Path(str(files("lesioncount") / "samples"))


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Results of the maps that come with the package, and a calibration from their masks."""
    folder = tmp_path_factory.mktemp("few")
    assert main(["count", str(SAMPLES / "probs"), "-o", str(folder / "out"), "--quiet"]) == 0
    truth = ["--truth", str(SAMPLES / "masks"), "--fit-from", "lesions"]
    assert main(["calibrate", str(folder / "out"), *truth, "-o", str(folder / "c.json"), "--quiet"]) == 0
    return folder


def test_a_stated_mean_calibrates_and_says_that_nothing_was_checked(counted, tmp_path, capsys):
    c = str(tmp_path / "c.json")
    assert main(["calibrate", str(counted / "out"), "--mean", "1.7±0.3", "-o", c]) == 0
    assert "a stated mean of 1.7 ± 0.3, not checked against any counted scan" in capsys.readouterr().out
    assert main(["count", str(SAMPLES / "probs"), "--calibration", c, "-o", str(tmp_path / "out"), "--report"]) == 0
    assert "not checked against any counted scan: count 10 scans and calibrate on them." in capsys.readouterr().out
    assert "not checked against any counted scan" in (tmp_path / "out" / "run.json").read_text()
    assert "not checked against any counted scan" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--prevalence", "0.97"], "State the mean"),
        (["--mean", "0"], "a mean above 0"),
        (["--mean", "1", "--prevalence", "0.5"], "one of them"),
        (["--mean", "1", "--truth-counts", "x.csv"], "without truth"),
    ],
)
def test_what_a_stated_number_cannot_do_is_said(counted, tmp_path, capsys, options, why):
    assert main(["calibrate", str(counted / "out"), *options, "-o", str(tmp_path / "c.json")]) == 2
    assert why in capsys.readouterr().err


def test_a_list_is_marked_and_its_promise_said(counted, tmp_path, capsys):
    count = ["count", str(SAMPLES / "probs"), "--calibration", str(counted / "c.json"), "-o", str(tmp_path / "out")]
    assert main([*count, "--list", "missed<=20%", "--report"]) == 0
    promise = ListRule.parse("missed<=20%").promise
    assert promise in capsys.readouterr().out
    with (tmp_path / "out" / "lesions.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    on, off = ([float(row["existence"]) for row in rows if row["on_list"] == mark] for mark in ("yes", "no"))
    assert on
    assert off
    assert min(on) > max(off)
    pages = [tmp_path / "out" / "report.html", *(tmp_path / "out" / "report").rglob("*.js")]
    shown = "".join(html.unescape(page.read_text(encoding="utf-8")) for page in pages)
    assert promise in shown
    assert sum(map(int, re.findall(r"(\d+) on the list", shown))) == len(on)
    assert "On the list" in shown
    assert main([*count, "--resume", "--list", "missed<=30%"]) == 2
    assert "listed" in capsys.readouterr().err
    assert main([*count[:-1], str(tmp_path / "other"), "--list", "missed<=7%"]) == 2
    assert "a list for one of" in capsys.readouterr().err


def test_a_list_needs_known_lesions(tmp_path, capsys):
    assert main(["count", str(SAMPLES / "probs"), "-o", str(tmp_path), "--list", "missed<=10%"]) == 2
    assert "needs a calibration that knows true lesions" in capsys.readouterr().err


def test_a_check_with_counted_scans(counted, tmp_path, capsys):
    check = ["calibrate", str(counted / "out"), "--check", str(counted / "c.json"), "--truth-counts"]
    assert main([*check, str(SAMPLES / "counts.tsv")]) == 0
    assert "fit the calibration" in capsys.readouterr().out
    more = [line.split("\t") for line in (SAMPLES / "counts.tsv").read_text().splitlines()]
    lines = [f"{scan}\t{count if count == 'count' else int(count) + 3}\n" for scan, count in more]
    (tmp_path / "more.tsv").write_text("".join(lines))
    assert main([*check, str(tmp_path / "more.tsv")]) == 1
    assert "there are more lesions than it says" in capsys.readouterr().out
    of_maps = ["calibrate", str(SAMPLES / "probs"), "--check", str(counted / "c.json"), "--known"]
    assert main([*of_maps, str(SAMPLES / "counts.tsv")]) == 0
    assert "fit the calibration" in capsys.readouterr().out
    assert main([*of_maps, str(tmp_path / "more.tsv")]) == 1
    assert "there are more lesions than it says" in capsys.readouterr().out
    assert main([*of_maps, str(SAMPLES / "counts.tsv"), "--protocol", "peaks"]) == 2
    assert "The calibration was fitted for lesions defined as" in capsys.readouterr().err


def test_a_calibration_with_features_or_of_known_counts_is_checked(counted, tmp_path, capsys):
    c, truth = tmp_path / "c.json", ["--truth-counts", str(SAMPLES / "counts.tsv")]
    assert main(["calibrate", str(counted / "out"), *truth, "--feature", "volume", "-o", str(c), "--quiet"]) == 0
    for how in ([str(counted / "out"), *truth], [str(SAMPLES / "probs"), "--known", truth[1]]):
        assert main(["calibrate", *how, "--check", str(c)]) == 0
        assert "fit the calibration" in capsys.readouterr().out
    known = ["calibrate", str(SAMPLES / "probs"), "--known", truth[1]]
    assert main([*known, "-o", str(c), "--overwrite", "--quiet"]) == 0
    assert main([*known, "--check", str(c)]) == 0
    assert "fit the calibration" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("made", "check", "why"),
    [
        (["--mean", "1.7"], [], "does not remember counted scans"),
        (["--truth-counts", str(SAMPLES / "counts.tsv")], ["-o", "d.json"], "writes nothing"),
    ],
)
def test_what_cannot_be_checked_is_said(counted, tmp_path, capsys, made, check, why):
    c = str(tmp_path / "c.json")
    assert main(["calibrate", str(counted / "out"), *made, "-o", c, "--quiet"]) == 0
    truth = ["--truth-counts", str(SAMPLES / "counts.tsv")]
    assert main(["calibrate", str(counted / "out"), *truth, "--check", c, *check]) == 2
    assert why in capsys.readouterr().err


def test_scans_unlike_those_of_the_calibration_are_said(counted, tmp_path, capsys):
    (tmp_path / "maps").mkdir()
    for path in sorted((SAMPLES / "probs").glob("*.nii.gz"))[:14]:
        image = nibabel.load(path)
        p = np.clip(image.get_fdata() + 0.35 * (image.get_fdata() > 0.02), 0, 0.97)
        p[::5, ::5, ::5] = 0.4
        nibabel.save(nibabel.Nifti1Image(p.astype(np.float32), image.affine), tmp_path / "maps" / path.name)
    count = ["count", str(tmp_path / "maps"), "--calibration", str(counted / "c.json"), "--report"]
    count += ["--list", "missed<=20%"]
    assert main([*count, "--interval", "conformal", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "unlike those of the calibration" in shown
    assert "more candidates per scan" in shown
    assert "What guaranteed intervals promise does not hold for them" in shown
    assert "so it promises nothing" in shown
    assert "the list promises nothing" in (tmp_path / "out" / "report.html").read_text()
    assert ListRule.parse("missed<=20%").promise not in shown
    assert "unlike" in json.loads((tmp_path / "out" / "run.json").read_text())
    assert "unlike those of the calibration" in (tmp_path / "out" / "report.html").read_text()


def test_scans_like_those_of_the_calibration_are_not(counted, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["count", str(SAMPLES / "probs"), "--calibration", str(counted / "c.json"), "-o", out]) == 0
    assert "unlike" not in capsys.readouterr().out
    assert "unlike" not in (tmp_path / "out" / "run.json").read_text()
