"""A stated mean, a list with a promise, a check, and scans unlike those of a calibration: on the command line."""

import csv
import html
import json
import re
from argparse import ArgumentTypeError
from importlib.resources import files
from pathlib import Path

import nibabel
import numpy as np
import pytest

from lesioncount.cli import main
from lesioncount.cli.calibrate import _mean, _prevalence
from lesioncount.errors import CalibrationError
from lesioncount.report.evaluation import write_evaluation_page
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit, KnownTruth
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
    shown = capsys.readouterr().out
    assert "a stated mean of 1.7 ± 0.3, with a prior learnt from" in shown
    assert "not checked against any counted scan" in shown
    count = ["count", str(SAMPLES / "probs"), "--calibration", c, "-o", str(tmp_path / "out")]
    assert main([*count, "--report", "--write", "bids", "--csv", "comma"]) == 0
    assert "not checked against any counted scan: count 10 scans and calibrate on them." in capsys.readouterr().out
    assert "not checked against any counted scan" in (tmp_path / "out" / "run.json").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "not checked against any counted scan" in page
    assert 'class="words">The calibration is from' not in page  # no remark of each scan, as it is so of all
    for name in ("counts.tsv", "counts.csv", "README", "dataset_description.json"):
        assert "not checked against any counted scan" in (tmp_path / "out" / name).read_text("utf-8")
    for path in (tmp_path / "out").glob("sub-*/**/*_dseg.json"):
        assert "not checked against" in json.loads(path.read_text())["Description"]
    for path in (tmp_path / "out").glob("sub-*.json"):
        assert any("not checked against" in warning for warning in json.loads(path.read_text())["warnings"])
    truth = ["--truth-counts", str(SAMPLES / "counts.tsv"), "--counts-only"]
    assert main(["evaluate", str(tmp_path / "out"), *truth, "-o", str(tmp_path / "e"), "--skip-missing"]) == 0
    assert "not checked against any counted scan" in " ".join(capsys.readouterr().out.split())
    people = ["--by", "arm", "--participants", str(SAMPLES / "participants.tsv"), "--skip-missing"]
    assert main(["summarize", str(tmp_path / "out"), *people, "--imputations", "3"]) == 0
    assert "not checked against any counted scan" in " ".join(capsys.readouterr().out.split())
    assert main(["count", str(SAMPLES / "new"), "--calibration", c]) == 0
    shown = capsys.readouterr().out
    assert shown.count("not checked against any counted scan") == 1  # of all scans together
    assert main(["count", str(SAMPLES / "new" / "sub-141_ses-01.nii.gz"), "--calibration", c]) == 0
    shown = capsys.readouterr().out
    assert "not checked against any counted scan" in shown
    assert "Without the calibration: " in shown


@pytest.mark.parametrize(
    ("read", "text", "value", "doubt"),
    [
        (_mean, "1.7 ± 35 %", 1.7, 0.595),
        (_mean, "1.7+-35%", 1.7, 0.595),
        (_mean, "1.7+/-0.3", 1.7, 0.3),
        (_mean, "1.7", 1.7, None),
        (_prevalence, "30%", 0.3, None),
        (_prevalence, "30 % ± 5 %", 0.3, 0.05),
        (_prevalence, "0.3±0.05", 0.3, 0.05),
    ],
)
def test_numbers_are_stated_as_they_are_printed(read, text, value, doubt):
    assert read(text) == pytest.approx((value, doubt))
    with pytest.raises(ArgumentTypeError, match=r"expected a (number|share) such as .* but got 'many'"):
        read("many")


def test_maps_are_counted_in_memory_for_what_is_stated_of_them(counted, tmp_path, capsys):
    """They give the calibration that their results give, and nothing is written beside them."""
    before = sorted((SAMPLES / "probs").iterdir())
    found = []
    for given in (counted / "out", SAMPLES / "probs"):
        c = tmp_path / f"{given.name}.json"
        assert main(["calibrate", str(given), "--mean", "1.7", "-o", str(c), "--quiet"]) == 0
        found.append(CalibrationFit.load(c))
    assert found[1].calibration.offset == pytest.approx(found[0].calibration.offset, rel=1e-3)
    assert found[1].scans.n_scans == found[0].scans.n_scans
    assert (found[1].known_protocol, found[1].reading) == (found[0].known_protocol, found[0].reading)
    assert sorted((SAMPLES / "probs").iterdir()) == before
    peaks = ["--protocol", "peaks", "--scale", "0.9", "-o", str(tmp_path / "peaks.json"), "--quiet"]
    assert main(["calibrate", str(SAMPLES / "probs"), "--mean", "1.2", *peaks]) == 0
    fit = CalibrationFit.load(tmp_path / "peaks.json")
    assert fit.calibration.protocol.candidates == "peaks"
    assert fit.reading["scale"] == 0.9
    assert main(["calibrate", str(counted / "out"), "--mean", "1.7", *peaks, "--overwrite"]) == 2
    assert "--protocol goes with maps. Results know it already." in capsys.readouterr().err


def test_a_table_of_detections_is_calibrated_to_what_is_stated(tmp_path):
    """Scans without a detection count, and columns are called as they are."""
    rng = np.random.default_rng(0)
    rows = [f"s{scan},{p:.3f},{50 * spot},0" for scan in range(30) for spot, p in enumerate(rng.uniform(0.1, 0.9, 5))]
    (tmp_path / "found.csv").write_text("\n".join(["series,p,x,y", *rows]))
    (tmp_path / "scans.csv").write_text("\n".join(["scan", *(f"s{scan}" for scan in range(40))]))
    (tmp_path / "known.csv").write_text("\n".join(["scan,count", *(f"s{scan},{scan % 3}" for scan in range(40))]))
    table = [str(tmp_path / "found.csv"), "--columns", "scan=series,score=p", "--scans", str(tmp_path / "scans.csv")]
    table += ["--coordinates", "pixels", "--spacing", "1,1"]
    for how in (["--mean", "1.2±0.1"], ["--known", str(tmp_path / "known.csv")]):
        assert main(["calibrate", *table, *how, "-o", str(tmp_path / "c.json"), "--quiet", "--overwrite"]) == 0
        fit = CalibrationFit.load(tmp_path / "c.json")
        assert fit.calibration.protocol.has_detections
        assert fit.scans.n_scans == 40


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--known", "ten.csv", "-o", "c.json"], "lesioncount calibrate maps/ --known ten.csv -o calibration.json"),
        (["--known", "ten.csv", "--check", "{c}"], "lesioncount calibrate maps/ --known ten.csv --check "),
        (["--mean", "1", "-o", "c.json"], "lesioncount calibrate maps/ --mean"),
    ],
)
def test_counts_of_no_maps_say_what_is_missing(counted, capsys, options, why):
    assert main(["calibrate", *(one.format(c=counted / "c.json") for one in options)]) == 2
    assert why in capsys.readouterr().err


def test_of_an_ensemble_all_members_have_what_is_stated(tmp_path):
    members = [str(SAMPLES / "member01"), str(tmp_path / "many")]
    (tmp_path / "many").mkdir()
    for path in (SAMPLES / "member01").glob("*.nii.gz"):
        image = nibabel.load(path)
        p = image.get_fdata().astype(np.float32)
        p[::5, ::5, ::5] = 0.4
        nibabel.save(nibabel.Nifti1Image(p, image.affine), tmp_path / "many" / path.name)
    out, again = str(tmp_path / "out"), str(tmp_path / "again")
    assert main(["count", "--members", *members, "-o", out, "--quiet"]) == 0
    assert main(["calibrate", out, "--mean", "1.2±0.05", "-o", str(tmp_path / "c.json"), "--quiet"]) == 0
    count = ["count", "--members", *members, "--calibration", str(tmp_path / "c.json"), "-o", again, "--quiet"]
    assert main(count) == 0
    with (tmp_path / "again" / "counts.tsv").open(encoding="utf-8") as file:
        means = [float(row["count_mean_calibrated"]) for row in csv.DictReader(file, delimiter="\t")]
    assert np.mean(means) == pytest.approx(1.2, rel=0.15)


def test_changes_have_no_stated_mean(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["compare", str(SAMPLES / "baseline"), str(SAMPLES / "followup"), "-o", out, "--quiet"]) == 0
    assert main(["calibrate", out, "--mean", "2", "-o", str(tmp_path / "c.json")]) == 2
    assert "holds changes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--prevalence", "0.97"], "State the mean"),
        (["--mean", "0"], "a mean above 0"),
        (["--mean", "1", "--prevalence", "0.5"], "If you know both, give the mean"),
        (["--mean", "1", "--truth-counts", "x.csv"], "without truth"),
        (["--mean", "1", "--fit-from", "lesions"], "leave --fit-from out"),
        (["--mean", "1", "--interval-groups", "10"], "leave --interval-groups out"),
        (["--mean", "1", "--group-by", "patient"], "leave --group-by out"),
        (["--mean", "1", "--positive-weight", "3"], "--mean does not go with --positive-weight"),
        (["--mean", "1", "--check", "c.json"], "--mean does not go with --check"),
        (["--mean", "1", "--known", "x.csv"], "leave --mean out"),
        (["--prevalence", "74"], "If it is in percent, write 0.74"),
        (["--prevalence", "1"], "but got 1. If every scan has a lesion, give the mean."),
        (["--mean", "1.7±5"], "no larger than the number, 1.7, but got 5"),
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
    assert "--list is missed<=30% instead of missed<=20%" in capsys.readouterr().err
    assert main([*count[:-1], str(tmp_path / "other"), "--list", "missed<=7%"]) == 2
    assert "a list for one of" in capsys.readouterr().err


def test_a_list_goes_into_a_bids_dataset(counted, tmp_path, capsys):
    count = ["count", str(SAMPLES / "new"), "--calibration", str(counted / "c.json"), "-o", str(tmp_path / "out")]
    assert main([*count, "--list", "missed<=30%", "--write", "bids"]) == 0
    sidecars = (tmp_path / "out").glob("sub-*/**/*_dseg.json")
    assert any("on_list" in json.loads(path.read_text()) for path in sidecars)
    assert "List: " in capsys.readouterr().out


def test_nothing_is_said_of_a_list_where_no_scan_was_counted(counted, tmp_path, capsys):
    (tmp_path / "broken.nii.gz").write_bytes(b"no map")
    count = ["count", str(tmp_path / "broken.nii.gz"), "--calibration", str(counted / "c.json")]
    assert main([*count, "-o", str(tmp_path / "out"), "--list", "missed<=30%"]) == 1
    assert "List: " not in capsys.readouterr().out


def test_a_list_needs_known_lesions_and_a_folder(counted, tmp_path, capsys):
    assert (
        main(["count", str(SAMPLES / "probs"), "--calibration", str(counted / "c.json"), "--list", "missed<=10%"]) == 2
    )
    assert "--list needs a folder" in capsys.readouterr().err
    assert main(["count", str(SAMPLES / "probs"), "-o", str(tmp_path), "--list", "missed<=10%"]) == 2
    assert "needs a calibration that knows true lesions" in capsys.readouterr().err
    known = ["--known", str(SAMPLES / "masks"), "-o", str(tmp_path), "--list", "missed<=30%"]
    assert main(["count", str(SAMPLES / "probs"), *known]) == 2
    assert "not only their number as --known does, also of masks: lesioncount calibrate RESULTS --truth MASKS" in (
        capsys.readouterr().err
    )
    (tmp_path / "found.csv").write_text("scan,score,x,y\na,0.9,1,1\n")
    table = ["count", str(tmp_path / "found.csv"), "--coordinates", "lps", "-o", str(tmp_path / "out")]
    assert main([*table, "--list", "missed<=30%"]) == 2
    assert "lesioncount calibrate RESULTS --reviews --fit-from lesions" in capsys.readouterr().err


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


def test_a_check_writes_nothing(counted, capsys):
    check = ["calibrate", str(counted / "out"), "--truth-counts", str(SAMPLES / "counts.tsv"), "-o", "d.json"]
    assert main([*check, "--check", str(counted / "c.json")]) == 2
    assert "writes nothing" in capsys.readouterr().err


def test_what_was_stated_is_checked_with_counted_scans(counted, tmp_path, capsys):
    c, more = str(tmp_path / "c.json"), tmp_path / "more.tsv"
    assert main(["calibrate", str(counted / "out"), "--mean", "1", "-o", c, "--quiet"]) == 0
    lines = [line.split("\t") for line in (SAMPLES / "counts.tsv").read_text().splitlines()[1:]]
    more.write_text("".join(["scan\tcount\n", *(f"{scan}\t{int(count) + 3}\n" for scan, count in lines)]))
    check = ["calibrate", str(counted / "out"), "--check", c, "--truth-counts"]
    for table, says in ((SAMPLES / "counts.tsv", "fit the calibration"), (more, "do not fit")):
        assert main([*check, str(table)]) == (says == "do not fit")
        shown = capsys.readouterr().out
        assert "compared with counts as it gives them" in shown
        assert says in shown


def test_calibrations_of_changes_cannot_be_checked_yet():
    with pytest.raises(CalibrationError, match="of changes cannot be checked yet"):
        CalibrationFit(Calibration(counted="new")).check(KnownTruth.of([[0.5]] * 10, [1] * 10))


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
    assert "The guarantee of the intervals does not hold for them." in shown
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "The promise of the list does not hold for them." in written["unlike"]
    assert set(written["outliers"]) <= {path.name.removesuffix(".nii.gz") for path in (tmp_path / "maps").iterdir()}
    assert f"{len(written['outliers'])} of 14 look unlike every one of those: {written['outliers'][0]}" in shown
    assert "so it promises nothing" in shown
    assert "the list promises nothing" in (tmp_path / "out" / "report.html").read_text()
    assert ListRule.parse("missed<=20%").promise not in shown
    assert "unlike those of the calibration" in (tmp_path / "out" / "report.html").read_text()
    assert "conformal 90 %" in shown
    assert "guaranteed 90 %" not in shown
    assert main(count[:4]) == 0  # without a folder
    assert "unlike those of the calibration" in capsys.readouterr().out
    truth = ["--truth-counts", str(SAMPLES / "counts.tsv"), "--counts-only", "--skip-missing"]
    assert main(["evaluate", str(tmp_path / "out"), *truth, "-o", str(tmp_path / "e")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "unlike those of the calibration" in shown
    assert "The conformal 90 % intervals hold the truth" in shown
    assert "guaranteed 90 %" not in shown
    write_evaluation_page(tmp_path / "e")
    assert "Do the conformal intervals hold?" in (tmp_path / "e" / "evaluation.html").read_text()


def test_scans_like_those_of_the_calibration_are_not(counted, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["count", str(SAMPLES / "probs"), "--calibration", str(counted / "c.json"), "-o", out]) == 0
    assert "note: These scans look like those of the calibration" in capsys.readouterr().out
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "unlike" not in written
    assert written["alike"].startswith("These scans look like those of the calibration")
