"""``evaluate``, ``calibrate`` and counting with a calibration or an ensemble, as people type them."""

import csv
import json
import re

import nibabel
import numpy as np
import pytest
from nifti_files import save

import lesioncount as lc
from lesioncount.assess.evaluation.compared_methods import tuned
from lesioncount.assess.truth import true_lesions
from lesioncount.cli import main
from lesioncount.cli.evaluate import last_class
from lesioncount.errors import CalibrationError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.runs import ChangeSettings, Settings
from lesioncount.trust.fitting import CalibrationFit
from lesioncount.trust.scores.lesions import OWNERSHIP_RULE


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Sixty scans of two patients' visits with masks: a network that is too sure of itself, and misses some lesions."""
    folder = tmp_path_factory.mktemp("trust")
    rng = np.random.default_rng(0)
    table = ["scan\tcount\tpatient"]
    for i in range(60):
        p, mask = np.full((12, 12, 9), 0.01, np.float32), np.zeros((12, 12, 9), np.uint8)
        corners = [(x, y, z) for x in (1, 5, 9) for y in (1, 5, 9) for z in (1, 6)]
        for k in rng.choice(len(corners), rng.integers(0, 5), replace=False):
            box = tuple(slice(at, at + 2) for at in corners[k])
            honest = rng.uniform(0.15, 0.9)
            p[box] = 1 / (1 + ((1 - honest) / honest) ** 3 * np.exp(-3))  # three times too steep, and too high
            mask[box] = rng.random() < honest
        if rng.random() < 0.2:
            mask[11, 11, 8] = 1  # a lesion without a candidate
        name = f"p{i // 2:02}_v{i % 2}"
        save(folder / "maps" / f"{name}.nii.gz", p)
        save(folder / "masks" / f"{name}.nii.gz", mask)
        count = lc.connected_component_count(mask.astype(float))
        table.append(f"{name}\t{count}\tp{i // 2:02}")
    (folder / "counts.tsv").write_text("\n".join(table) + "\n")
    assert run("count", folder / "maps", "-o", folder / "out", "--quiet") == 0
    assert run("calibrate", folder / "out", "--truth", folder / "masks", "-o", folder / "cal.json", "--quiet") == 0
    return folder


def test_masks_and_their_table_of_counts_say_the_same(cohort, tmp_path, capsys):
    assert run("evaluate", cohort / "out", "--truth", cohort / "masks", "-o", tmp_path / "a", "--jobs", "2") == 0
    shown = capsys.readouterr().out
    assert "CC, tuned" in shown
    assert "60 scans, 95 % intervals" in shown
    table = cohort / "counts.tsv"
    assert (
        run("evaluate", cohort / "out", "--truth-counts", table, "-o", tmp_path / "b", "--counts-only", "--quiet") == 0
    )
    a, b = (json.loads((tmp_path / name / "evaluation.json").read_text()) for name in "ab")
    assert a["methods"]["raw"] == b["methods"]["raw"]
    assert a["methods"]["cc"] == b["methods"]["cc"]
    assert b["lesions"] is None
    assert "cc_tuned" not in b["methods"]
    assert any("maps were not read" in note for note in b["notes"])
    assert (tmp_path / "a" / "evaluation.html").stat().st_size > 10_000
    assert len(rows(tmp_path / "a" / "scans.tsv")) == 60
    assert {row["score"] for row in rows(tmp_path / "a" / "scores.tsv")} >= {"rps", "mae", "ece", "auroc"}


def test_scores_are_those_of_counts_and_the_table_fits_80_columns(cohort, tmp_path, capsys):
    truth = {row["scan"]: 3 * int(row["count"]) + 30 for row in rows(cohort / "counts.tsv")}
    table = tmp_path / "far.tsv"
    table.write_text("scan\tcount\n" + "".join(f"{scan}\t{count}\n" for scan, count in truth.items()))
    options = ["--truth-counts", table, "-o", tmp_path / "e", "--counts-only"]
    assert run("evaluate", cohort / "out", *options) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("WARNING: The counts are systematically too low: ")
    assert "is off by" in shown[1]
    begin = next(i for i, line in enumerate(shown) if line.startswith("method"))
    assert shown[begin].split() == [
        "method",
        "RPS,",
        "in",
        "lesions",
        "error",
        "bias",
        "right",
        "in",
        "10",
        "%",
        "covered",
    ]
    assert all(len(line) <= 80 for line in shown[begin : begin + 4])
    assert "\x1b" not in "".join(shown)
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    found = content["methods"]["raw"]["scores"]
    scans = content["scans"]
    assert found["accuracy"]["estimate"] == found["coverage90"]["estimate"] == 0
    assert found["mae"]["estimate"] == pytest.approx(np.mean([row["truth"] - row["median"] for row in scans]))
    assert found["rps"]["estimate"] == pytest.approx(np.mean([row["rps"] for row in scans]))
    assert found["rps"]["estimate"] > 25
    assert content["bins"] is None
    assert content["methods"]["raw"]["confusion"] is None
    assert content["methods"]["raw"]["pit"]["n"][-1] == 60
    assert content["agreement"]["bland_altman"]["mean"]["high"] < 0


def test_bins_are_asked_for(cohort, tmp_path, capsys):
    options = ["--truth", cohort / "masks", "-o", tmp_path / "e", "--bins", "0,1,2+"]
    assert run("evaluate", cohort / "out", *options) == 0
    assert "Counts from 2 on are one class in RPS and right, as asked (--bins)." in capsys.readouterr().out
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert content["bins"] == 2
    assert np.sum(content["methods"]["cc"]["confusion"]) == 60
    assert np.shape(content["methods"]["cc"]["confusion"]) == (3, 3)
    assert content["methods"]["raw"]["scores"]["f1"]["estimate"] > 0


@pytest.mark.parametrize("text", ["4", "4+", "0,1,2,3,4+"])
def test_the_last_class_alone_means_all_up_to_it(text):
    assert last_class(text) == 4


@pytest.mark.parametrize("text", ["0,1,2,3,4", "1,2+", "0,2,3+", "0,1,1+", "0,1,x+", "0,1,+", "", "0+", "0,1,2+,3+"])
def test_classes_that_are_none_are_refused(cohort, tmp_path, capsys, text):
    with pytest.raises(SystemExit):
        run("evaluate", cohort / "out", "--truth", cohort / "masks", "-o", tmp_path / "e", "--bins", text)
    assert "write all from 0 on, with a plus after the last, such as 0,1,2,3,4+" in " ".join(
        capsys.readouterr().err.split()
    )


def test_tuned_threshold_has_the_least_error_on_the_other_folds():
    """Where all counts are 4 or more, classes cannot tell thresholds apart, and errors can."""
    rng = np.random.default_rng(0)
    truth = rng.integers(20, 300, 100)
    table = np.stack([truth * 2, truth + 9, truth - 3, truth // 2], axis=1)
    groups = [str(i) for i in range(100)]
    assert (tuned(table, truth, groups, seed=0) == truth - 3).all()
    assert (tuned(table, truth, groups, seed=0, bins=4) == truth - 3).all()  # of equally good ones a middle one
    table[:50, 2] = 5 * truth[:50]
    folds = tuned(table, truth, groups, seed=0)
    assert (folds == truth + 9).all()
    right = np.where(np.arange(100)[:, None] % 2 == 0, [0, 2], [3, 1])
    assert tuned(right, right[:, 1], groups, seed=0, bins=2).tolist() == right[:, 1].tolist()


def test_guaranteed_intervals_are_judged_by_thirds(cohort, tmp_path):
    out = tmp_path / "out"
    options = ["--calibration", cohort / "cal.json", "--interval", "conformal", "--quiet"]
    assert run("count", cohort / "maps", "-o", out, *options) == 0
    assert run("evaluate", out, "--truth", cohort / "masks", "-o", tmp_path / "e", "--counts-only", "--quiet") == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    truth, median = ({row["scan"]: row[name] for row in content["scans"]} for name in ("truth", "median"))
    thirds = content["guaranteed"]
    assert sum(third["n"] for third in thirds) == 60
    for third in thirds:
        inside, width = [], []
        for row in rows(out / "counts.tsv"):
            low, high = int(row["interval90_low_conformal"]), int(row["interval90_high_conformal"])
            if third["low"] <= median[row["scan"]] <= third["high"]:
                inside.append(low <= truth[row["scan"]] <= high)
                width.append(high - low)
        assert third["n"] == len(inside)
        assert third["coverage"]["estimate"] == pytest.approx(np.mean(inside))
        assert third["width"]["estimate"] == pytest.approx(np.mean(width))
    assert any("their mean width is" in note for note in content["notes"])


def test_lesions_are_compared_where_there_are_masks(cohort, tmp_path):
    assert run("evaluate", cohort / "out", "--truth", cohort / "masks", "-o", tmp_path / "e", "--quiet") == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    found = content["lesions"]
    total = sum(row["truth"] for row in content["scans"])
    assert found["n_lesions"] == total
    assert found["n_hit"] + found["n_missed"] == total  # boxes lie apart: neither split nor merged
    assert found["n_shared"] == found["shared"]["estimate"] == 0
    assert found["missed"]["estimate"] == pytest.approx(found["n_missed"] / total)
    assert found["n_split"] == found["n_merged"] == 0
    assert found["sensitivity"]["estimate"] == pytest.approx(found["n_hit"] / total)
    assert found["false_positives_per_scan"]["estimate"] == pytest.approx((found["n_candidates"] - found["n_hit"]) / 60)
    assert sum(found["reliability"]["n"]) == found["n_candidates"]


def test_lesions_are_listed_by_size_with_their_candidates(cohort, tmp_path):
    assert run("evaluate", cohort / "out", "--truth", cohort / "masks", "-o", tmp_path / "e", "--quiet") == 0
    found = json.loads((tmp_path / "e" / "evaluation.json").read_text())["lesions"]
    matches = rows(tmp_path / "e" / "lesion_matches.tsv")
    assert len(matches) == found["n_lesions"]  # boxes lie apart: at most one candidate on each
    assert sum(row["is_own"] == "yes" for row in matches) == found["n_hit"]
    assert sum(row["candidate"] == "n/a" for row in matches) == found["n_missed"]
    assert sum(one["n_lesions"] for one in found["by_size"]) == found["n_lesions"]
    hit = sum(one["n_lesions"] * one["sensitivity"]["estimate"] for one in found["by_size"])
    assert hit == pytest.approx(found["n_hit"])
    strong = sum(row["is_own"] == "yes" and float(row["existence"]) > 0.5 for row in matches)
    false = 60 * found["false_positives_per_scan_above_half"]["estimate"]
    assert found["f1_above_half"]["estimate"] == pytest.approx(2 * strong / (strong + false + found["n_lesions"]))


def test_sensitivity_is_given_for_the_sizes_that_are_asked_for(cohort, tmp_path, capsys):
    known = ("--truth", cohort / "masks", "--quiet", "--overwrite", "-o", tmp_path / "e")
    found = {}
    for sizes in ("2vox,8vox", "6mm3,24mm3"):  # a voxel has 3 mm³; none has 2 to 7
        assert run("evaluate", cohort / "out", *known, "--size-edges", sizes) == 0
        found[sizes] = json.loads((tmp_path / "e" / "evaluation.json").read_text())["lesions"]
    voxels, mm3 = (one["by_size"] for one in found.values())
    lesions = {(row["scan"], row["lesion"]): row for row in rows(tmp_path / "e" / "lesion_matches.tsv")}
    owned = {key for key, row in lesions.items() if row["is_own"] == "yes"}
    for part, same in zip(voxels, mm3, strict=True):
        inside = [
            key for key, row in lesions.items() if part["low"] <= int(row["lesion_voxels"]) < (part["high"] or 1e9)
        ]
        assert part["n_lesions"] == same["n_lesions"] == len(inside) > 0
        assert part["sensitivity"]["estimate"] == pytest.approx(len(owned.intersection(inside)) / len(inside))
        assert (same["low"], same["unit"]) == (3 * part["low"], "mm³")
    assert [part["high"] for part in voxels] == [2, None]
    assert sum(part["n_lesions"] for part in voxels) == found["2vox,8vox"]["n_lesions"]
    assert "Sensitivity, lesions of less than 6 mm³" in (tmp_path / "e" / "evaluation.html").read_text()
    for wrong in ("20vox,10vox", "3mm", "5vox,50mm3", "0vox", "many"):
        with pytest.raises(SystemExit):
            run("evaluate", cohort / "out", *known, "--size-edges", wrong)
        assert "size" in capsys.readouterr().err


def test_groups_from_a_column_or_from_names(cohort, tmp_path):
    for out, options in (
        ("a", ["--truth-counts", cohort / "counts.tsv", "--group-by", "patient"]),
        ("b", ["--truth-counts", cohort / "counts.tsv", "--group-by", "(p..)_"]),
        ("c", ["--truth", cohort / "masks", "--group-by", "^p.."]),
    ):
        assert run("evaluate", cohort / "out", "-o", tmp_path / out, "--counts-only", "--quiet", *options) == 0
        content = json.loads((tmp_path / out / "evaluation.json").read_text())
        assert (content["n_scans"], content["n_groups"]) == (60, 30)


def test_scans_of_one_group_have_no_intervals(cohort, tmp_path, capsys):
    options = ["--truth-counts", cohort / "counts.tsv", "--group-by", "^(p)"]
    assert run("evaluate", cohort / "out", "-o", tmp_path / "e", "--counts-only", *options) == 0
    shown = capsys.readouterr().out
    assert "There are no intervals: all scans are of one group. A verdict takes 10 groups." in shown
    assert "60 scans of 1 group. Results:" in shown
    assert "95 %" not in (tmp_path / "e" / "evaluation.html").read_text().partition("<footer>")[2]


def test_groups_of_a_column_are_found_by_the_names_of_files(tmp_path):
    """Records have names for the disk, tables those that people wrote: `sub 0` has the record `sub%200.json`."""
    p = np.full((9, 9, 9), 0.01, np.float32)
    p[4, 4, 4] = 0.8
    table = ["scan\tcount\tpatient"]
    for i in range(4):
        save(tmp_path / "maps" / f"sub {i}.nii.gz", p)
        table.append(f"sub {i}\t1\tp{i // 2}")
    (tmp_path / "t.tsv").write_text("\n".join(table) + "\n")
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet") == 0
    options = ["--truth-counts", tmp_path / "t.tsv", "--group-by", "patient", "--quiet"]
    assert run("evaluate", tmp_path / "out", "-o", tmp_path / "e", *options) == 0
    scans = rows(tmp_path / "e" / "scans.tsv")
    assert [(row["scan"], row["group"]) for row in scans] == [(f"sub {i}", f"p{i // 2}") for i in range(4)]


def test_a_lesion_belongs_to_one_candidate_only(tmp_path):
    """Two candidates on one lesion: both touch it, so none is a false positive, but one of them is the lesion."""
    p, mask = np.full((12, 9, 9), 0.01, np.float32), np.zeros((12, 9, 9), np.uint8)
    p[2:5, 4, 4], p[7, 4, 4], mask[2:9, 4, 4] = 0.8, 0.3, 1
    save(tmp_path / "maps" / "a.nii.gz", p)
    save(tmp_path / "masks" / "a.nii.gz", mask)
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet") == 0
    assert run("evaluate", tmp_path / "out", "--truth", tmp_path / "masks", "-o", tmp_path / "e", "--quiet") == 0
    found = json.loads((tmp_path / "e" / "evaluation.json").read_text())["lesions"]
    assert found["rule"] == OWNERSHIP_RULE
    assert (found["n_candidates"], found["n_hit"], found["n_split"]) == (2, 1, 1)
    assert [rate for rate in found["reliability"]["hit_rate"] if rate is not None] == [0, 1]
    assert found["false_positives_per_scan"]["estimate"] == 0
    assert found["sensitivity"]["estimate"] == 1


def test_merged_lesions_are_no_detections(tmp_path):
    """Three lesions under one candidate, and one that is missed: one of four has a candidate of its own."""
    p, mask = np.full((14, 9, 9), 0.01, np.float32), np.zeros((14, 9, 9), np.uint8)
    p[1:10, 4, 4], p[6, 4, 4] = 0.8, 0.3
    mask[1:3, 4, 4] = mask[4:6, 4, 4] = mask[8:10, 4, 4] = mask[12, 4, 4] = 1
    save(tmp_path / "maps" / "a.nii.gz", p)
    save(tmp_path / "masks" / "a.nii.gz", mask)
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet") == 0
    assert run("evaluate", tmp_path / "out", "--truth", tmp_path / "masks", "-o", tmp_path / "e", "--quiet") == 0
    found = json.loads((tmp_path / "e" / "evaluation.json").read_text())["lesions"]
    assert (found["n_hit"], found["n_shared"], found["n_missed"]) == (1, 2, 1)
    assert [found[name]["estimate"] for name in ("sensitivity", "shared", "missed")] == [0.25, 0.5, 0.25]


def test_counts_come_from_the_table_and_lesions_from_the_masks(cohort, tmp_path, capsys):
    names = [row["scan"] for row in rows(cohort / "counts.tsv")]
    (tmp_path / "t.csv").write_text("scan,count\n" + "".join(f"{name},7\n" for name in names))
    options = ["--truth", cohort / "masks", "--truth-counts", tmp_path / "t.csv"]
    assert run("evaluate", cohort / "out", *options, "-o", tmp_path / "e") == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert {row["truth"] for row in content["scans"]} == {7}
    drawn = [int(row["count"]) for row in rows(cohort / "counts.tsv")]
    assert content["lesions"]["n_lesions"] == sum(drawn)
    assert content["truth"]["kind"] == "masks and counts"
    other = sum(count != 7 for count in drawn)
    assert f"In {other} of 60 scans the table has another count than the mask" in capsys.readouterr().out
    (tmp_path / "t.csv").write_text(f"scan,count\n{names[0]},7\n{names[1]},7\n")
    assert run("evaluate", cohort / "out", *options, "-o", tmp_path / "f") == 2
    assert "no truth for 58 scans" in capsys.readouterr().err
    assert run("evaluate", cohort / "out", *options, "-o", tmp_path / "f", "--skip-missing", "--quiet") == 0
    assert json.loads((tmp_path / "f" / "evaluation.json").read_text())["n_scans"] == 2


@pytest.mark.parametrize("where", ["truth", "mask"])
def test_nan_in_a_mask_is_outside(tmp_path, where):
    p = np.full((9, 9, 9), 0.01, np.float32)
    p[2, 4, 4] = p[7, 4, 4] = 0.8
    lesions, brain = (p > 0.5).astype(np.float32), np.ones((9, 9, 9), np.float32)
    (lesions if where == "truth" else brain)[5:] = np.nan
    save(tmp_path / "maps" / "a.nii.gz", p)
    save(tmp_path / "masks" / "a.nii.gz", lesions)
    save(tmp_path / "brain.nii.gz", brain)
    grid = VoxelGrid(tmp_path / "maps" / "a.nii.gz", (9, 9, 9), None, (1.0, 1.0, 1.0))
    found = true_lesions(tmp_path / "masks" / "a.nii.gz", grid, lc.CountingProtocol(), within=tmp_path / "brain.nii.gz")
    assert len(found) == 1
    chosen = true_lesions(tmp_path / "masks" / "a.nii.gz", grid, lc.CountingProtocol(), label=1)
    assert len(chosen) == (1 if where == "truth" else 2)


def test_scale_and_offset_of_a_mask_are_applied(tmp_path):
    """As programs write a mask that was a float: bytes with a scale, here with an offset too."""
    stored = np.full((9, 9, 9), 100, np.uint8)
    stored[2, 4, 4] = stored[7, 4, 4] = 255
    image = nibabel.Nifti1Image(stored, np.eye(4))
    image.header.set_slope_inter(1 / 155, -100 / 155)
    nibabel.save(image, tmp_path / "a.nii.gz")
    grid = VoxelGrid(tmp_path / "a.nii.gz", (9, 9, 9), None, (1.0, 1.0, 1.0))
    assert len(true_lesions(tmp_path / "a.nii.gz", grid, lc.CountingProtocol())) == 2
    assert len(true_lesions(tmp_path / "a.nii.gz", grid, lc.CountingProtocol(), within=tmp_path / "a.nii.gz")) == 2


def test_calibration_makes_held_out_counts_better_and_says_so(cohort, tmp_path, capsys):
    out = tmp_path / "cal.json"
    assert run("calibrate", cohort / "out", "--truth-counts", cohort / "counts.tsv", "-o", out) == 0
    shown = capsys.readouterr().out
    assert "The calibration makes held-out counts better" in shown
    assert "Guaranteed intervals" in shown
    assert CalibrationFit.load(out).calibration.existence([0.9])[0] < 0.8  # the maps are three times too sure
    assert (
        run(
            "calibrate", cohort / "out", "--truth", cohort / "masks", "--fit-from", "lesions", "-o", tmp_path / "l.json"
        )
        == 0
    )
    assert "the lesions of 60 scans" in capsys.readouterr().out
    assert CalibrationFit.load(tmp_path / "l.json").calibration.existence([0.9])[0] < 0.8


def test_counts_with_a_calibration_stand_beside_those_without(cohort, tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--calibration", cohort / "cal.json", "--interval", "conformal"]
    assert run("count", cohort / "maps", "-o", out, *options) == 0
    title, header, first = capsys.readouterr().out.splitlines()[:3]
    assert (title, header.split()[-3:]) == ("Calibrated counts", ["guaranteed", "90", "%"])
    row = rows(out / "counts.tsv")[0]
    assert first.endswith(f" {row['interval90_low_conformal']} to {row['interval90_high_conformal']}")
    fit = CalibrationFit.load(cohort / "cal.json")
    before = {row["scan"]: row for row in rows(cohort / "out" / "counts.tsv")}
    for row in rows(out / "counts.tsv"):
        record = json.loads((out / f"{row['scan']}.json").read_text())
        existence = [lesion["existence"] for lesion in record["lesions"]]
        expected = fit.calibration.distribution(existence)
        assert row["count_mean"] == before[row["scan"]]["count_mean"]
        assert float(row["count_mean_calibrated"]) == pytest.approx(expected.mean(), rel=1e-5)
        assert int(row["count_mode_calibrated"]) == expected.mode()
        low, high = fit.conformal.interval(existence, 0.9)
        assert (int(row["interval90_low_conformal"]), int(row["interval90_high_conformal"])) == (low, high)
        assert row["calibration"] == fit.fingerprint
        np.testing.assert_allclose(record["pmf_calibrated"], expected.pmf())
    lesions = rows(out / "lesions.tsv")
    first = [lesion for lesion in lesions if lesion["scan"] == lesions[0]["scan"]]
    corrected = fit.calibration.existence([float(lesion["existence"]) for lesion in first])
    np.testing.assert_allclose([float(lesion["existence_calibrated"]) for lesion in first], corrected, rtol=1e-4)
    assert run("evaluate", out, "--truth", cohort / "masks", "-o", tmp_path / "e", "--counts-only", "--quiet") == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert content["differences"]["calibrated - raw"]["rps"]["high"] < 0
    assert content["methods"]["calibrated"]["scores"]["zero_mass"]["estimate"] == 0


def test_resume_notices_another_calibration(cohort, tmp_path):
    out = tmp_path / "out"
    assert run("calibrate", "--positive-weight", "3", "-o", tmp_path / "w.json", "--quiet") == 0
    assert run("count", cohort / "maps", "-o", out, "--quiet", "--calibration", tmp_path / "w.json") == 0
    stamp = (out / "p00_v0.json").stat().st_mtime_ns
    assert run("count", cohort / "maps", "-o", out, "--quiet", "--resume", "--calibration", tmp_path / "w.json") == 0
    assert (out / "p00_v0.json").stat().st_mtime_ns == stamp
    assert run("count", cohort / "maps", "-o", out, "--quiet", "--resume", "--calibration", cohort / "cal.json") == 2
    assert run("count", cohort / "maps", "-o", out, "--quiet", "--resume") == 2
    assert (out / "p00_v0.json").stat().st_mtime_ns == stamp


def test_an_ensemble_is_the_mixture_of_its_members(cohort, tmp_path):
    for path in (cohort / "maps").iterdir():
        image = nibabel.load(path)
        save(tmp_path / "fold1" / path.name, (np.asarray(image.dataobj) ** 2).astype(np.float32))
    out = tmp_path / "out"
    assert run("count", "--members", cohort / "maps", tmp_path / "fold1", "-o", out, "--quiet", "--jobs", "2") == 0
    members = rows(out / "members.tsv")
    assert len(members) == 120
    for row in rows(out / "counts.tsv")[:10]:
        maps = [
            np.asarray(nibabel.load(f / f"{row['scan']}.nii.gz").dataobj) for f in (cohort / "maps", tmp_path / "fold1")
        ]
        mixture = lc.MixtureOfCounts([lc.count_lesions(p).distribution for p in maps])
        assert float(row["count_mean"]) == pytest.approx(mixture.mean(), rel=1e-5)
        assert float(row["variance_between"]) == pytest.approx(mixture.between_variance, rel=1e-4, abs=1e-9)
        assert row["n_members"] == "2"
    assert {row["member"] for row in rows(out / "lesions.tsv")} == {"1", "2"}
    assert run("evaluate", out, "--truth", cohort / "masks", "-o", tmp_path / "e", "--quiet") == 0
    assert run("count", cohort / "maps", "-o", out, "--overwrite", "--quiet") == 0
    assert not (out / "members.tsv").exists()


def test_members_must_match(cohort, tmp_path, capsys):
    save(tmp_path / "fold1" / "p00_v0.nii.gz", np.zeros((4, 4, 4), np.float32))
    assert run("count", "--members", cohort / "maps", tmp_path / "fold1", "-o", tmp_path / "out") == 2
    assert re.search(r"fold1 lacks p00_v1, .* and 54 more\. Add the missing maps", capsys.readouterr().err)
    assert run("count", "--members", cohort / "maps", "-o", tmp_path / "out") == 2
    assert "two or more folders" in capsys.readouterr().err


def test_polarised_maps_are_called_so(tmp_path, capsys):
    for i in range(12):
        p = np.full((9, 9, 9), 0.001, np.float32)
        p[4, 4, 4], p[1, 1, 1] = 0.9999, 0.3 if i == 0 else 0.995
        save(tmp_path / "maps" / f"s{i}.nii.gz", p)
    (tmp_path / "t.csv").write_text("scan,count\n" + "".join(f"s{i},1\n" for i in range(12)))
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet") == 0
    assert run("evaluate", tmp_path / "out", "--truth-counts", tmp_path / "t.csv", "-o", tmp_path / "e") == 0
    assert "The maps are polarised: 96%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "evaluate out --truth other -o e",
            "There is no truth for 60 scans in .*other: p00_v0, .* It holds: stranger",
        ),
        ("evaluate out --truth grid -o e --skip-missing", "on the grid of the map, but .* has shape"),
        (
            "evaluate out --truth labels -o e --skip-missing",
            "a mask of 0 and 1, but .* holds 0, 1, 2. .*--truth-instances; .*--truth-label",
        ),
        ("evaluate out --truth-counts few.csv -o e", "There is no truth for 59 scans"),
        (
            "evaluate out --truth-counts nocolumn.csv -o e",
            "Expected a column 'count' .* scan, volume. .*--count-column",
        ),
        (
            "evaluate out --truth-counts bad.csv -o e --skip-missing",
            "line 2: expected a whole number .* as count of p00_v0, but got 'many'",
        ),
        ("evaluate out --truth-counts twice.csv -o e", "'p00_v0' has more than one row"),
        ("evaluate out --truth-counts ragged.csv -o e", "as many cells as the header"),
        ("evaluate out --truth-counts nowhere.csv -o e", "nowhere.csv does not exist"),
        ("evaluate out -o e", r"masks \(--truth\), a table of counts \(--truth-counts\), or both"),
        ("evaluate maps --truth masks -o e", "Expected the results of a run in .*maps"),
        (
            "evaluate out --truth masks -o e --group-by visit",
            "'visit' is not a column of the truth, and as a pattern it finds",
        ),
        ("evaluate out --truth masks -o e --group-by (", "nor a regular expression"),
        (
            "calibrate out --truth-counts few.csv --skip-missing -o c.json",
            "at least 10 .* 1 and .* worse .*--prevalence",
        ),
        ("calibrate out --truth-counts counts.tsv --fit-from lesions -o c.json", "masks are needed"),
        ("calibrate out --truth masks --truth-counts counts.tsv --fit-from lesions -o c.json", "leave the table out"),
        ("evaluate out --truth-counts counts.tsv --truth-instances -o e", "takes masks"),
        ("calibrate out --truth masks -o cal.json", "exists. Choose another name"),
        ("calibrate -o c.json", "Expected the folder of results"),
        ("calibrate out --positive-weight 3 -o c.json", "nothing is fitted"),
        ("calibrate --positive-weight -3 -o c.json", "Expected a positive weight"),
        ("count maps -o new --calibration cal.json --connectivity 6", "fitted for lesions defined as"),
        ("count maps -o new --calibration counts.tsv", "Expected a calibration"),
        ("count maps -o new --interval conformal", "Guaranteed intervals need a calibration"),
    ],
)
def test_what_does_not_fit_is_said(cohort, monkeypatch, capsys, command, message):
    monkeypatch.chdir(cohort)
    save(cohort / "other" / "stranger.nii.gz", np.zeros((12, 12, 9), np.uint8))
    save(cohort / "grid" / "p00_v0.nii.gz", np.zeros((12, 12, 8), np.uint8))
    save(cohort / "labels" / "p00_v0.nii.gz", np.arange(12 * 12 * 9).reshape(12, 12, 9).astype(np.uint8) % 3)
    for name, text in (
        ("few", "scan,count\np00_v0,1\n"),
        ("nocolumn", "scan,volume\np00_v0,1.5\n"),
        ("bad", "scan,count\np00_v0,many\n"),
        ("twice", "scan,count\np00_v0,1\np00_v0,2\n"),
        ("ragged", "scan,count\np00_v0\n"),
    ):
        (cohort / f"{name}.csv").write_text(text)
    assert run(*command.split()) == 2
    shown = capsys.readouterr().err
    assert re.search(message, shown), shown
    assert not (cohort / "new").exists()


def test_a_chosen_label_of_a_mask_is_the_lesion(cohort, tmp_path):
    for path in (cohort / "masks").iterdir():
        save(tmp_path / "m" / path.name, (np.asarray(nibabel.load(path).dataobj) * 2).astype(np.uint8))
    options = ["--truth", tmp_path / "m", "--truth-label", "2", "--counts-only", "--quiet"]
    assert run("evaluate", cohort / "out", "-o", tmp_path / "e", *options) == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert [row["truth"] for row in content["scans"]] == [int(row["count"]) for row in rows(cohort / "counts.tsv")]


def test_masks_may_have_a_suffix(cohort, tmp_path):
    for path in (cohort / "masks").iterdir():
        name = path.name.replace(".nii", "_label-lesion_mask.nii")
        save(tmp_path / "m" / name, np.asarray(nibabel.load(path).dataobj))
    options = ["--truth", tmp_path / "m", "--truth-suffix", "_label-lesion_mask", "--counts-only", "--quiet"]
    assert run("evaluate", cohort / "out", "-o", tmp_path / "e", *options) == 0


def test_maps_that_are_gone_or_changed_are_noticed(tmp_path, capsys):
    p = np.full((9, 9, 9), 0.01, np.float32)
    p[4, 4, 4] = 0.8
    save(tmp_path / "maps" / "a.nii.gz", p)
    save(tmp_path / "masks" / "a.nii.gz", (p > 0.5).astype(np.uint8))
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet") == 0
    evaluate = ["evaluate", tmp_path / "out", "--truth", tmp_path / "masks", "-o", tmp_path / "e", "--quiet"]
    save(tmp_path / "maps" / "a.nii.gz", p * 0.9)
    assert run(*evaluate) == 2
    assert "has changed since it was counted" in capsys.readouterr().err
    (tmp_path / "maps" / "a.nii.gz").unlink()
    assert run(*evaluate) == 2
    assert "--counts-only" in capsys.readouterr().err
    assert run(*evaluate, "--counts-only") == 0


def test_truth_outside_the_mask_of_the_count_does_not_count(tmp_path):
    p = np.full((9, 9, 9), 0.01, np.float32)
    p[2, 4, 4] = p[7, 4, 4] = 0.8
    save(tmp_path / "maps" / "a.nii.gz", p)
    save(tmp_path / "masks" / "a.nii.gz", (p > 0.5).astype(np.uint8))
    inside = np.zeros((9, 9, 9), np.uint8)
    inside[:5] = 1
    save(tmp_path / "brain" / "a.nii.gz", inside)
    out = tmp_path / "out"
    assert run("count", tmp_path / "maps", "-o", out, "--mask", tmp_path / "brain", "--quiet") == 0
    assert run("evaluate", out, "--truth", tmp_path / "masks", "-o", tmp_path / "e", "--quiet") == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert content["scans"][0]["truth"] == content["scans"][0]["predicted"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "scan, count\ns0, 1\ns1, n/a\n",
        "scan;count\ns0;1\n;\n;\n",
        "\ufeffscan\tcount\r\ns0 \t1\r\n",
        "scan,count\ns0,1\ns1,nan\n",
    ],
)
def test_tables_as_programs_write_them(tmp_path, text):
    p = np.full((9, 9, 9), 0.01, np.float32)
    p[4, 4, 4] = 0.8
    for name in ("s0", "s1"):
        save(tmp_path / "maps" / f"{name}.nii.gz", p)
    (tmp_path / "t.txt").write_text(text, encoding="utf-8", newline="")
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet") == 0
    evaluate = ["evaluate", tmp_path / "out", "--truth-counts", tmp_path / "t.txt", "-o", tmp_path / "e", "--quiet"]
    assert run(*evaluate, "--skip-missing") == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert [row["scan"] for row in content["scans"]] == ["s0"]
    assert run(*evaluate, "--overwrite") == 2  # the other one has no count


def test_one_mask_is_not_that_of_many_scans(cohort, tmp_path, capsys):
    arguments = ["evaluate", cohort / "out", "-o", tmp_path / "e"]
    assert run(*arguments, "--truth", cohort / "masks" / "p00_v0.nii.gz") == 2
    assert "Expected a folder with a mask for each of 60 scans" in capsys.readouterr().err
    assert run(*arguments, "--truth", cohort / "masks", "--truth-label", "7") == 2
    assert "No voxel of any mask has the value 7" in capsys.readouterr().err


def test_masks_of_one_name_are_told_apart_by_their_folders(tmp_path):
    p = np.full((9, 9, 9), 0.01, np.float32)
    for n, folder in enumerate(("a", "b"), start=1):
        p[2 * n, 4, 4] = 0.9
        save(tmp_path / "maps" / folder / "x.nii.gz", p)
        save(tmp_path / "masks" / folder / "x.nii.gz", (p > 0.5).astype(np.uint8))
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet") == 0
    assert run("evaluate", tmp_path / "out", "--truth", tmp_path / "masks", "-o", tmp_path / "e", "--quiet") == 0
    content = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert [row["truth"] for row in content["scans"]] == [1, 2]


def test_few_patients_have_intervals_only_where_they_can_be_guaranteed(cohort, tmp_path, capsys):
    """Thirty patients in pairs of visits: one scan of each makes the intervals; eight patients are too few."""
    table = cohort / "counts.tsv"
    assert (
        run("calibrate", cohort / "out", "--truth-counts", table, "--group-by", "patient", "-o", tmp_path / "c.json")
        == 0
    )
    assert "from 30 scans, for count --interval conformal" in capsys.readouterr().out
    options = ["--truth-counts", table, "--group-by", "p(.).*_", "-o", tmp_path / "d.json"]
    assert run("calibrate", cohort / "out", *options) == 0
    assert "too few for 90 %" in capsys.readouterr().out
    one = ["--truth-counts", table, "--group-by", "(p).*_", "-o", tmp_path / "e.json"]
    assert run("calibrate", cohort / "out", *one) == 0
    assert "scans are of one patient (p): none can be held out" in capsys.readouterr().out
    count = ["count", cohort / "maps", "-o", tmp_path / "out", "--interval", "conformal", "--calibration"]
    assert run(*count, tmp_path / "d.json") == 2
    assert not (tmp_path / "out").exists()


def test_a_calibration_brings_its_protocol_channel_scale_and_logits(tmp_path, capsys):
    rng = np.random.default_rng(1)
    table = ["scan,count"]
    for i in range(24):
        logits = np.full((2, 1, 9, 9), -5, np.float32)
        for at in rng.permutation(9)[: rng.integers(1, 6)]:
            logits[1, 0, 3 * (at // 3) + 1, 3 * (at % 3) + 1] = rng.normal(1, 2)
        (tmp_path / "maps").mkdir(exist_ok=True)
        np.save(tmp_path / "maps" / f"s{i:02}.npy", 2 / (1 + np.exp(-logits)))
        table.append(f"s{i:02},{int((rng.random((9, 9)) < 1 / (1 + np.exp(-logits[1, 0]))).sum())}")
    (tmp_path / "counts.csv").write_text("\n".join(table))
    how = ["--protocol", "peaks", "--threshold", "0.2", "--channel", "1", "--scale", "1/2"]
    assert run("count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet", *how) == 0
    cal = tmp_path / "c.json"
    assert run("calibrate", tmp_path / "out", "--truth-counts", tmp_path / "counts.csv", "-o", cal, "--quiet") == 0
    with_it = ["--calibration", cal, "--quiet"]
    assert run("count", tmp_path / "maps", "-o", tmp_path / "a", *with_it) == 0
    assert run("count", tmp_path / "maps", "-o", tmp_path / "b", *with_it, *how) == 0
    assert (tmp_path / "a" / "counts.tsv").read_text() == (tmp_path / "b" / "counts.tsv").read_text()
    for other, said in (
        (["--threshold", "0.3"], "fitted for lesions defined as"),
        (["--protocol", "paper"], "fitted for lesions defined as"),
        (["--channel", "0"], "with channel 1, but these are read with channel 0"),
        (["--logits"], "with logits False, but these are read with logits True"),
        (["--scale", "1"], "with scale 0.5, but these are read with scale 1.0"),
    ):
        assert run("count", tmp_path / "maps", "-o", tmp_path / "c", *with_it, *other) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
    ours = lc.count_files(tmp_path / "maps", calibration=cal, interval="conformal")
    assert [row.count.count_mean for row in ours] == [
        json.loads((tmp_path / "a" / f"{row.name}.json").read_text())["count"]["count_mean_calibrated"] for row in ours
    ]
    assert all(row.record.counted.guaranteed is not None for row in ours)
    fit = lc.load_calibration(cal)
    assert fit.reading == {"channel": 1, "scale": 0.5, "logits": False}
    again = lc.count_files(
        tmp_path / "maps", calibration=fit.calibration, protocol=fit.calibration.protocol, channel=1, scale=0.5
    )
    assert [row.count for row in again] == [row.count for row in ours]


def test_settings_take_what_is_not_said_from_the_calibration():
    peaks = lc.CountingProtocol(candidates="peaks")
    fit = CalibrationFit(lc.Calibration(protocol=peaks), reading={"channel": 2, "scale": None, "logits": True})
    said, adopted = Settings(peaks, 1, calibration=fit), Settings(calibration=fit)
    assert (adopted.protocol, adopted.channel, adopted.scale, adopted.logits) == (peaks, 2, None, True)
    adopted.check(members=False)
    with pytest.raises(CalibrationError, match="channel 2"):
        said.check(members=False)
    assert (Settings().protocol, Settings().logits) == (lc.CountingProtocol(), False)
    of_changes = CalibrationFit(lc.Calibration(counted="new", protocol=peaks), reading=fit.reading)
    assert ChangeSettings(calibrations=(of_changes,)).recorded.logits is True


@pytest.mark.parametrize("reading", [{}, {"channel": "1", "scale": None, "logits": False}, [1]])
def test_a_calibration_whose_reading_is_damaged_is_refused(cohort, tmp_path, capsys, reading):
    content = json.loads((cohort / "cal.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps(content | {"reading": reading}))
    assert run("count", cohort / "maps", "-o", tmp_path / "out", "--calibration", tmp_path / "c.json") == 2
    assert "how maps were read" in capsys.readouterr().err
