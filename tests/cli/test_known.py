"""``count --known``: counts of some maps correct all of them, in one command."""

import csv
import json
import re

import numpy as np
import pytest
from nifti_files import save

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.errors import TruthError
from lesioncount.trust.fitting import CalibrationFit


def run(*arguments):
    return main([str(argument) for argument in arguments])


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def picture(rng, n):
    """A map of n spots, of which some touch, by a network that is too sure; and the number of those that are cells."""
    p, count = np.full((40, 40), 0.01), 0
    x, y = np.mgrid[:40, :40]
    for _ in range(n):
        at, honest = rng.uniform(4, 36, 2), rng.uniform(0.3, 0.95)
        height = 1 / (1 + ((1 - honest) / honest) ** 2 * np.exp(-2))
        p = np.maximum(p, height * np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 9))
        count += rng.random() < honest
    return p.astype(np.float32), int(count)


@pytest.fixture(scope="module")
def plate(tmp_path_factory):
    """Sixty maps as TIFF, with spaces in their names, and a table of 25 counts from a spreadsheet."""
    tifffile = pytest.importorskip("tifffile")
    folder, rng = tmp_path_factory.mktemp("plate"), np.random.default_rng(5)
    (folder / "maps").mkdir()
    table, counts = ["Bild;Platte;Zellen"], {}
    for i in range(60):
        well = f"Plate1_{'ABCDEF'[i // 10]}{i % 10 + 1:02} DAPI"
        p, counts[well] = picture(rng, rng.integers(1, 10))
        tifffile.imwrite(folder / "maps" / f"{well}_Probabilities.tif", p)
        if i < 25:
            table.append(f"{well}.czi;Plate1;{counts[well]}")
    (folder / "counts.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(table).encode())
    assert run("count", folder / "maps", "--known", folder / "counts.csv", "-o", folder / "out", "--quiet") == 0
    return folder, counts


def test_maps_and_a_spreadsheet_give_a_calibrated_table_in_one_command(plate, tmp_path, capsys):
    folder, counts = plate
    assert run("count", folder / "maps", "--known", folder / "counts.csv", "-o", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "names are in the column 'Bild' (there without '_Probabilities'), counts in 'Zellen'" in shown
    assert "calibrated on 25 known counts, are off by " in shown
    assert "% of the true counts" in shown
    assert f"lesioncount count NEW -o OUT --calibration {tmp_path / 'out' / 'calibration.json'}" in shown
    found = rows(tmp_path / "out" / "counts.tsv")
    truth = list(counts.values())
    raw, corrected = (
        np.mean([abs(int(row[name]) - true) for row, true in list(zip(found, truth, strict=True))[25:]])
        for name in ("count_median", "count_median_calibrated")
    )
    assert corrected <= raw
    fit = CalibrationFit.load(tmp_path / "out" / "calibration.json")
    assert fit.held_out.n_scans == 25
    assert f"off by {fit.held_out.after['mae'].value:.3g} " in shown
    for name in ("counts.tsv", "lesions.tsv", "calibration.json"):  # the same whenever it is done
        assert (tmp_path / "out" / name).read_bytes() == (folder / "out" / name).read_bytes()


def test_maps_without_a_known_count_are_compared_with_those_that_have_one(plate, tmp_path, capsys):
    tifffile = pytest.importorskip("tifffile")
    folder, _ = plate
    assert "unlike" not in json.loads((folder / "out" / "run.json").read_text())
    alike = json.loads((folder / "out" / "run.json").read_text())["alike"]
    assert alike.startswith("Scans without a known count look like those of the calibration")
    (tmp_path / "maps").mkdir()
    for place, path in enumerate(sorted((folder / "maps").iterdir())):
        p = tifffile.imread(path)
        tifffile.imwrite(tmp_path / "maps" / path.name, p if place < 25 else p**0.3)
    known = ["--known", folder / "counts.csv"]
    assert run("count", tmp_path / "maps", *known, "-o", tmp_path / "out") == 0
    assert "warning: Scans without a known count are unlike those of the calibration" in capsys.readouterr().out
    assert "unlike" in json.loads((tmp_path / "out" / "run.json").read_text())
    for path in sorted((tmp_path / "maps").iterdir())[34:]:
        path.unlink()
    assert run("count", tmp_path / "maps", *known, "-o", tmp_path / "nine") == 0
    assert "unlike" not in capsys.readouterr().out


def test_new_maps_are_counted_with_what_was_learned(plate, tmp_path):
    folder, _ = plate
    cal = folder / "out" / "calibration.json"
    assert run("count", folder / "maps", "--calibration", cal, "-o", tmp_path / "new", "--quiet") == 0
    learned, new = rows(folder / "out" / "counts.tsv"), rows(tmp_path / "new" / "counts.tsv")
    same = [a["count_mean_calibrated"] == b["count_mean_calibrated"] for a, b in zip(learned, new, strict=True)]
    assert all(same[25:])
    assert sum(same[:25]) < 3  # those are corrected out of fold
    assert {row["calibration"] for row in learned} == {CalibrationFit.load(cal).fingerprint}


def test_what_reads_results_corrects_known_scans_as_the_run_did(plate, tmp_path):
    folder, _ = plate
    results = lc.read_results(folder / "out")
    means = [float(row["count_mean_calibrated"]) for row in rows(folder / "out" / "counts.tsv")]
    assert results.total(results.calibration).mean() == pytest.approx(sum(means), rel=5e-3)
    members = [np.mean([one.mean() for one in subject.members]) for subject in results.of().subjects]
    np.testing.assert_allclose(members, means, rtol=1e-2)
    options = ["--truth-counts", folder / "counts.csv", "--skip-missing", "--counts-only", "--quiet"]
    assert run("evaluate", folder / "out", *options, "-o", tmp_path / "e") == 0
    found = json.loads((tmp_path / "e" / "evaluation.json").read_text())["methods"]["calibrated"]["scores"]["mae"]
    fit = CalibrationFit.load(folder / "out" / "calibration.json")
    assert found["estimate"] == pytest.approx(fit.held_out.after["mae"].value)


def test_a_run_goes_on_with_the_same_counts_and_no_others(plate, tmp_path, capsys):
    folder, _ = plate
    out, table = tmp_path / "out", tmp_path / "counts.csv"
    text = (folder / "counts.csv").read_text("utf-8-sig")
    table.write_text(text)
    count = ["count", folder / "maps", "--known", table, "-o", out, "--quiet"]
    assert run(*count) == 0
    before = {file.name: file.read_bytes() for file in out.iterdir() if file.name not in ("run.json", "runs.jsonl")}
    gone = ["Plate1_A02%20DAPI_Probabilities.json", "Plate1_F02%20DAPI_Probabilities.json", "calibration.json"]
    for name in gone:
        (out / name).unlink()
    stamps = {file.name: file.stat().st_mtime_ns for file in out.glob("Plate1*.json")}
    assert run(*count) == 2
    assert "holds the results of an earlier run" in capsys.readouterr().err
    assert run(*count, "--resume") == 0
    assert {name: (out / name).read_bytes() for name in before} == before
    assert all((out / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())
    table.write_text(text.rpartition(";")[0] + ";17\n")
    assert run(*count, "--resume") == 2
    assert "known is " in capsys.readouterr().err
    assert run("count", folder / "maps", "-o", out, "--quiet", "--resume") == 2
    assert "known is none instead of" in capsys.readouterr().err
    assert run("count", folder / "maps", "-o", out, "--quiet", "--overwrite") == 0
    assert not (out / "calibration.json").exists()


def test_a_calibration_that_somebody_else_wrote_stays(plate, tmp_path, capsys):
    folder, _ = plate
    (tmp_path / "calibration.json").write_text("{}")
    assert run("count", folder / "maps", "--known", folder / "counts.csv", "-o", tmp_path, "--quiet") == 2
    assert "is not a result of an earlier run as lesioncount wrote it" in capsys.readouterr().err
    assert (tmp_path / "calibration.json").read_text() == "{}"


def test_five_folds_and_forty_masks_give_a_calibrated_ensemble_with_scores(tmp_path, capsys):
    rng = np.random.default_rng(3)
    for i in range(40):
        mask = np.zeros((9, 9, 4), np.uint8)
        logits = np.full((9, 9, 4), -4.0)
        for x, y in np.argwhere(rng.random((3, 3)) < 0.4):
            at = rng.normal(1, 2)
            logits[3 * x + 1, 3 * y + 1, 1] = at
            mask[3 * x + 1, 3 * y + 1, 1] = rng.random() < 1 / (1 + np.exp(-at))
        save(tmp_path / "masks" / f"case_{i:02}.nii.gz", mask)
        for fold in range(5):
            p = 1 / (1 + np.exp(-2 * logits - rng.normal(0, 0.5, logits.shape)))
            save(tmp_path / f"fold_{fold}" / f"case_{i:02}.nii.gz", p.astype(np.float32))
    folds = [tmp_path / f"fold_{fold}" for fold in range(5)]
    assert run("count", *folds, "--members", "--known", tmp_path / "masks", "-o", tmp_path / "out") == 0
    assert "calibrated on 40 known counts, are off by " in capsys.readouterr().out
    assert len(rows(tmp_path / "out" / "members.tsv")) == 200
    assert run("evaluate", tmp_path / "out", "--truth", tmp_path / "masks", "-o", tmp_path / "e", "--quiet") == 0
    methods = json.loads((tmp_path / "e" / "evaluation.json").read_text())["methods"]
    calibrated, raw = (methods[name]["scores"]["rps"]["estimate"] for name in ("calibrated", "raw"))
    assert calibrated < 1.02 * raw  # members already make up for most of what each is too sure of
    calibrate = ["calibrate", tmp_path / "out", "--truth", tmp_path / "masks", "-o", tmp_path / "c.json"]
    assert run(*calibrate) == 0
    assert run(*calibrate[:4], "--fit-from", "lesions", "-o", tmp_path / "d.json") == 2
    assert "of an ensemble" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "more", "said"),
    [
        ("name;cells\nelsewhere;3\n", [], "none of them names any of the scans"),
        ("scan;cells\nelsewhere;3\n", [], "has a known count for none of the 60 scans"),
        ("Bild;a;b\n{0};1;2\n{1};1;3\n", [], "Which column of .* has the counts. a, b have whole numbers"),
        ("Bild;a;b\n{0};1;2\n{1};1;3\n", ["--count-column", "b"], "at least 10 scans .* there are 2 and 5"),
        ("Bild;Zellen\n{0};-3\n", ["--count-column", "Zellen"], "line 2: expected a whole number"),
        ("Bild;Zellen\n{0};3\n", ["--calibration", "c.json"], "cannot be read|Leave one of them out"),
    ],
)
def test_what_does_not_fit_is_said(plate, tmp_path, capsys, table, more, said):
    folder, _ = plate
    (tmp_path / "t.csv").write_text(table.format("Plate1_A01 DAPI", "Plate1_A02 DAPI"))
    assert run("count", folder / "maps", "--known", tmp_path / "t.csv", "-o", tmp_path / "out", *more) == 2
    error = capsys.readouterr().err
    assert re.search(said, error), error
    assert not (tmp_path / "out").exists()


def test_calibrate_takes_maps_and_known_counts(plate, tmp_path, capsys):
    folder, counts = plate
    cal = tmp_path / "c.json"
    calibrate = ["calibrate", folder / "maps", "--known", folder / "counts.csv", "-o", cal]
    assert run(*calibrate) == 0
    assert "calibrated on 25 known counts, are off by " in capsys.readouterr().out
    learned = CalibrationFit.load(folder / "out" / "calibration.json")
    assert CalibrationFit.load(cal).fingerprint == learned.fingerprint
    by_name = {f"{well}_Probabilities": count for well, count in list(counts.items())[:25]}
    for known in (folder / "counts.csv", by_name):
        assert lc.calibrate(folder / "maps", known).fingerprint == learned.fingerprint
    scores = lc.evaluate(folder / "maps", list(counts.values()), calibration=cal)
    assert scores["calibrated"]["rps"].value < scores["raw"]["rps"].value
    for more, said in (
        (["--truth", folder], "leave --truth out"),
        (["--positive-weight", "3"], "leave --positive-weight out"),
    ):
        assert run(*calibrate, *more, "--overwrite") == 2
        assert said in capsys.readouterr().err
    table = ["--truth-counts", folder / "counts.csv"]
    assert run("calibrate", folder / "out", "--channel", "1", *table, "-o", tmp_path / "d.json") == 2
    assert "--channel goes with maps" in capsys.readouterr().err
    assert run("calibrate", folder / "out", folder / "out", *table, "-o", tmp_path / "d.json") == 2
    assert "Expected one folder of results, but got 2" in capsys.readouterr().err
    assert run("calibrate", folder / "out", "--known", folder / "counts.csv", "-o", tmp_path / "d.json") == 2
    assert "--known takes maps" in capsys.readouterr().err


def test_arrays_teach_as_files_do(plate):
    folder, counts = plate
    from lesioncount.files import open_map

    paths = sorted((folder / "maps").iterdir())
    maps = [np.concatenate([*open_map(path).pieces()]) for path in paths]
    known = list(counts.values())
    of_arrays, of_files = lc.calibrate(maps[:25], known[:25]), lc.calibrate(paths[:25], known[:25])
    assert of_arrays.calibration == of_files.calibration
    assert (
        lc.count_files(paths[25:], calibration=of_arrays)[0].count
        == lc.count_files(folder / "maps", calibration=folder / "out" / "calibration.json")[25].count
    )
    with pytest.raises(TruthError, match="a count for each of 2 maps"):
        lc.calibrate(maps[:2], [1])
    with pytest.raises(TruthError, match="Expected files"):
        lc.calibrate(maps, "counts.csv")


def test_evaluate_says_what_to_try_where_thresholding_is_better(plate, tmp_path, capsys):
    folder, counts = plate
    table = tmp_path / "all.csv"
    table.write_text("scan,count\n" + "".join(f"{well}_Probabilities,{n}\n" for well, n in counts.items()))
    assert run("count", folder / "maps", "-o", tmp_path / "out", "--quiet", "--threshold", "0.02") == 0
    assert run("evaluate", tmp_path / "out", "--truth-counts", table, "-o", tmp_path / "e") == 0
    shown = capsys.readouterr().out
    assert "calibrated on these counts, would be off by " in shown
    assert f"lesioncount count {folder / 'maps'} --known {table} -o OUT" in shown
    assert run("evaluate", tmp_path / "out", "--truth-counts", table, "-o", tmp_path / "f", "--counts-only") == 0
    assert "would be off by" not in capsys.readouterr().out
