"""A calibration that knows the size of candidates, through commands, folders of results and reviews."""

import json

import numpy as np
import pytest
from nifti_files import save
from runs.small_cohort import folders

import lesioncount as lc
from lesioncount.assess.reviews.scan_review import ScanReview, reviewed_count, untouched_count
from lesioncount.cli import main
from lesioncount.errors import CalibrationError
from lesioncount.questions import Question
from lesioncount.results.results import read_changes, read_results
from lesioncount.runs import ChangeSettings, Settings, compare_batch, count_batch
from lesioncount.trust.candidate_table import FEATURES
from lesioncount.trust.fitting import CalibrationFit

BY_VOLUME = lc.Calibration(0.8, -0.3, weights={"volume": 0.5}, typical_features={"volume": 3.0})


def large_and_small(rng):
    """A map of lesions, which are large, and of others that look the same but are small; and how many lesions."""
    probabilities, n = np.zeros((12, 40, 8), np.float32), 0
    for place in range(8):
        if rng.random() < 0.6:
            is_lesion = rng.random() < 0.5
            side = 3 if is_lesion else 1
            probabilities[4 : 4 + side, 5 * place : 5 * place + side, 2 : 2 + side] = 0.3
            probabilities[4, 5 * place, 2] = rng.uniform(0.4, 0.9)
            n += is_lesion
    return probabilities, n


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Forty maps, and a table of their counts."""
    root, rng = tmp_path_factory.mktemp("cohort"), np.random.default_rng(0)
    rows = ["scan\tcount"]
    for number in range(40):
        probabilities, n = large_and_small(rng)
        save(root / "maps" / f"s{number:02}.nii.gz", probabilities)
        rows.append(f"s{number:02}\t{n}")
    (root / "truth.tsv").write_text("\n".join(rows) + "\n")
    count_batch([root / "maps"], root / "raw", settings=Settings())
    return root


def test_sizes_tell_lesions_from_others_that_look_the_same(cohort, tmp_path, capsys):
    truth = ["--truth-counts", str(cohort / "truth.tsv")]
    fits = {}
    for name, more in (("plain", []), ("volume", ["--feature", "volume"])):
        file = tmp_path / f"{name}.json"
        assert main(["calibrate", str(cohort / "raw"), *truth, *more, "-o", str(file)]) == 0
        fits[name] = CalibrationFit.load(file)
    assert "volume +" in capsys.readouterr().out
    assert fits["volume"].calibration.weights["volume"] > 0.5
    assert fits["volume"].held_out.after["rps"].value < 0.6 * fits["plain"].held_out.after["rps"].value

    options = ["--calibration", str(tmp_path / "volume.json"), "--interval", "conformal", "--report", "--quiet"]
    assert main(["count", str(cohort / "maps"), "-o", str(tmp_path / "out"), *options]) == 0
    results, calibration = read_results(tmp_path / "out"), fits["volume"].calibration
    page = (tmp_path / "out" / "report.html").read_text()
    assert "in the map and typical volume exists with probability" in page
    for record in results.records():
        large, small = ([row.existence_calibrated for row in record.lesions if (row.n_voxels > 1) is is_large]
                        for is_large in (True, False))  # fmt: skip
        assert min(large, default=1) > 0.5 > max(small, default=0)
        count = record.summary.distribution(calibration)
        assert count.pmf().tolist() == pytest.approx(record.pmf_calibrated, abs=1e-12)
    assert results.total(calibration).mean() == pytest.approx(
        sum(scan.counted.calibrated.count_mean for scan in results.counted), rel=1e-3
    )
    assert main(["evaluate", str(tmp_path / "out"), *truth, "-o", str(tmp_path / "eval"), "--quiet"]) == 0
    methods = json.loads((tmp_path / "eval" / "evaluation.json").read_text())["methods"]
    calibrated, raw = (methods[name]["scores"]["mae"]["estimate"] for name in ("calibrated", "raw"))
    assert calibrated < 0.5 * raw


def test_a_run_with_features_is_resumed(cohort, tmp_path):
    settings = Settings(calibration=CalibrationFit(BY_VOLUME))
    first = count_batch([cohort / "maps"], tmp_path / "out", settings=settings)
    again = count_batch([cohort / "maps"], tmp_path / "out", settings=settings, resume=True)
    assert {scan.tables[0].names for scan in (*first.counted, *again.counted)} == {("peak", "volume")}
    assert again.total(BY_VOLUME).mean() == pytest.approx(first.total(BY_VOLUME).mean())


@pytest.mark.parametrize("name", FEATURES)
def test_every_feature_is_the_same_from_a_map_and_from_its_record(cohort, name):
    for scan in read_results(cohort / "raw", features=(name,)).counted[:10]:
        found = lc.count_file(scan.grid.path).result.candidates
        table = lc.CandidateTable.of_candidates(found, name)
        assert scan.tables[0].names == table.names == ("peak", name)
        np.testing.assert_array_equal(scan.tables[0].features((name,)), table.features((name,)))


def test_a_folder_that_was_read_without_the_feature_says_which_one_is_missing(cohort):
    plain, with_volume = (read_results(cohort / "raw", features=features) for features in ((), ("volume",)))
    assert with_volume.total(BY_VOLUME).mean() > 0
    with pytest.raises(CalibrationError, match="no column 'volume'"):
        plain.total(BY_VOLUME)


def test_a_map_without_voxel_size_fails_and_says_why(tmp_path, rng):
    np.save(tmp_path / "a.npy", rng.random((6, 7)) ** 3)
    results = count_batch(
        [tmp_path / "a.npy"], tmp_path / "out", settings=Settings(calibration=CalibrationFit(BY_VOLUME))
    )
    assert "needs the volume of each candidate" in results.failed[0].error
    assert "no voxel size" in results.failed[0].error


def test_a_feature_that_maps_do_not_have_is_refused_before_anything_is_counted(cohort, tmp_path):
    CalibrationFit(lc.Calibration(weights={"score": 1.0})).save(tmp_path / "cal.json")
    options = ["-o", str(tmp_path / "out"), "--calibration", str(tmp_path / "cal.json")]
    assert main(["count", str(cohort / "maps"), *options]) != 0
    assert not (tmp_path / "out" / "counts.tsv").exists()


def test_regions_questions_and_reviews_count_with_features(cohort, tmp_path):
    path, areas = cohort / "maps" / "s00.nii.gz", np.ones((12, 40, 8), np.uint8)
    areas[:, 20:] = 2
    save(tmp_path / "areas.nii.gz", areas)
    CalibrationFit(BY_VOLUME).save(tmp_path / "cal.json")
    options = ["--regions", str(tmp_path / "areas.nii.gz"), "--ask", "count >= 1", "--quiet"]
    out = tmp_path / "out"
    assert main(["count", str(path), "-o", str(out), "--calibration", str(tmp_path / "cal.json"), *options]) == 0
    record = read_results(out).record("s00")
    summary = record.summary
    whole = summary.distribution(BY_VOLUME)
    assert sum(one.calibrated.count_mean for one in summary.regions) == pytest.approx(whole.mean())
    assert summary.answers[0].probability_calibrated == pytest.approx(whole.sf(0))
    untouched = untouched_count(summary, BY_VOLUME)
    assert untouched.mean() == pytest.approx(whole.mean())
    assert reviewed_count(record, ScanReview(), BY_VOLUME).mean() == pytest.approx(whole.mean())


def test_changes_use_the_feature_of_the_candidate_in_the_session_that_it_is_in(tmp_path):
    fits = tuple(
        CalibrationFit(
            lc.Calibration(0.8, -0.3, counted=kind, weights={"volume": 0.5}, typical_features={"volume": 1.0})
        )
        for kind in ("new", "gone")
    )
    settings = ChangeSettings(calibrations=fits, questions=(Question.parse("new >= 1"),))
    compare_batch(folders(tmp_path), tmp_path / "out", settings=settings)
    results = read_changes(tmp_path / "out")
    for record in results.records():
        pair = record.pairs[0]
        for fit in fits:
            kind = fit.calibration.counted
            table = record.table(pair, kind, "volume")
            session = record.sessions[pair.before if kind == "gone" else pair.after]
            assert table["volume"].tolist() == [lesion.volume_mm3 for lesion in session.lesions]
            expected = fit.calibration.distribution(table).pmf()
            assert pair.counts[kind].pmf_calibrated == pytest.approx(expected.tolist())
        new = pair.counts["new"].pmf_calibrated
        assert pair.answers[0].probability_calibrated == pytest.approx(sum(new[1:]))
    gone = results.of("gone")
    assert gone.counted[0].distribution(gone.calibration).mean() >= 0


def test_nothing_is_fitted_with_features_where_nothing_is_fitted(tmp_path, capsys):
    assert main(["calibrate", "--positive-weight", "3", "--feature", "volume", "-o", str(tmp_path / "c.json")]) != 0
    assert "nothing is fitted" in capsys.readouterr().err


def test_features_are_listed_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["calibrate", "--help-all"])
    assert "{" + ",".join(FEATURES) + "}" in capsys.readouterr().out
