"""Several readers of a scan: their tables, scores against each, and their disagreement beside the error."""

import json

import numpy as np
import pytest
from nifti_files import save
from review_cohort import SimulatedReader

from lesioncount.assess.reviews.export import export_reviews
from lesioncount.assess.truth import read_truth_table
from lesioncount.cli import main
from lesioncount.errors import TruthError
from lesioncount.results.results import read_results
from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.fitting.candidates_of_scans import Numbers
from lesioncount.trust.fitting.likelihood import CountLikelihood, ReadersLikelihood
from lesioncount.trust.scores.readers import BetweenReaders

N = 30


def _run(*arguments):
    return main([*map(str, arguments), "--quiet"])


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Detections whose scores are honest, and three readers, of whom the last has not read every scan."""
    folder = tmp_path_factory.mktemp("readers")
    rng = np.random.default_rng(3)
    rows, wide, long = ["scan,x_mm,y_mm,z_mm,score"], ["scan,reader1,reader2,reader3"], ["scan,reader,count"]
    for number in range(N):
        scores = rng.beta(0.5, 0.9, 6)
        places = 50 * np.arange(6)
        rows += [f"s{number},{place},0,0,{score:.4f}" for place, score in zip(places, scores, strict=True)]
        counts = [int((rng.random(6) < scores).sum()) for _ in range(3)]
        cells = [*counts[:2], counts[2] if number % 3 else "n/a"]
        wide.append(",".join(map(str, [f"s{number}", *cells])))
        long += [f"s{number},{name},{count}" for name, count in zip("abc", cells, strict=True)]
    for name, lines in (("d", rows), ("wide", wide), ("long", long)):
        (folder / f"{name}.csv").write_text("\n".join(lines))
    for reader in (1, 2, 3):
        lines = [f"{line.split(',')[0]},{line.split(',')[reader]}" for line in wide[1:]]
        (folder / f"reader{reader}.csv").write_text("\n".join(["scan,count", *lines]))
    assert _run("count", folder / "d.csv", "-o", folder / "out") == 0
    return folder


def _rows(path):
    header, *rows = (line.split("\t") for line in path.read_text().splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def _evaluated(cohort, out, table, *options):
    assert _run("evaluate", cohort / "out", "--truth-counts", cohort / table, "-o", out, "--counts-only", *options) == 0
    return json.loads((out / "evaluation.json").read_text())


def test_columns_and_rows_of_readers_are_the_same(cohort):
    wide, long = (
        read_truth_table(cohort / f"{name}.csv", [[f"s{i}"] * 2 for i in range(N)]) for name in ("wide", "long")
    )
    for number in range(N):
        assert wide.counts_of(f"s{number}") == long.counts_of(f"s{number}")
    assert [len(wide.counts_of(f"s{number}")) for number in range(4)] == [2, 3, 3, 2]
    assert wide.count_of("s1") == sorted(wide.counts_of("s1"))[1]


def test_columns_of_readers_can_be_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("scan,anna,ben,slices\ns1,1,3,90\n")
    assert read_truth_table(path, count_column="anna,ben").counts_of("s1") == (1, 3)
    with pytest.raises(TruthError, match="several readers: --count-column A,B"):
        read_truth_table(path)


def test_a_reader_reads_a_scan_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("scan,reader,count\ns1,anna,1\ns1,ben,2\ns1,anna,1\n")
    with pytest.raises(TruthError, match=r"line 4: 's1' has more than one row of the reader 'anna'"):
        read_truth_table(path)
    path.write_text("scan,reader,count\ns1,anna,1\ns1,,2\n")
    with pytest.raises(TruthError, match="line 3: the row has no reader"):
        read_truth_table(path)


def test_scores_are_means_over_readers(cohort, tmp_path):
    several = _evaluated(cohort, tmp_path / "all", "wide.csv")
    pair = _evaluated(cohort, tmp_path / "two", "wide.csv", "--count-column", "reader1,reader2")
    one, two = (_evaluated(cohort, tmp_path / f"{k}", f"reader{k}.csv") for k in (1, 2))
    for score in ("rps", "mae", "bias", "coverage90", "nll"):
        mean, *each = (of["methods"]["raw"]["scores"][score]["estimate"] for of in (pair, one, two))
        assert mean == pytest.approx(np.mean(each))
    assert several["n_scans"] == len(several["scans"]) == N
    assert several["methods"]["raw"]["scores"]["rps"]["estimate"] == pytest.approx(
        np.mean([scan["rps"] for scan in several["scans"]])
    )
    assert "readers" not in one
    header, first, *_ = (tmp_path / "all" / "scans.tsv").read_text().splitlines()
    assert header.endswith("\treaders")
    assert len(first.split("\t")[-1].split()) == 2
    assert not (tmp_path / "1" / "scans.tsv").read_text().splitlines()[0].endswith("readers")


def test_disagreement_of_readers_stands_beside_the_error(cohort, tmp_path, capsys):
    found = _evaluated(cohort, tmp_path / "all", "wide.csv")["readers"]
    assert (found["n_scans"], found["n_readings"]) == (N, 80)
    difference = found["error"]["estimate"] - found["between"]["estimate"]
    assert found["difference"]["estimate"] == pytest.approx(difference)
    assert found["difference"]["low"] < difference < found["difference"]["high"]
    known = ("--truth-counts", str(cohort / "long.csv"), "--counts-only", "--overwrite")
    assert main(["evaluate", str(cohort / "out"), *known, "-o", str(tmp_path / "all")]) == 0
    printed, page = capsys.readouterr().out, (tmp_path / "all" / "evaluation.html").read_text()
    for text in (printed, page):
        assert (
            f"two readers differ by {found['between']['estimate']:.2f}; difference {difference:.2f} [".replace("-", "−")
            in text
        )
        assert "interval excludes a margin above" in text
        assert "as good as" not in text
        assert "scores above 0.5" in text  # of a detector, there are no components
    assert '<th scope="col">Readings</th>' in page


def test_readers_who_agree_have_no_disagreement():
    found = BetweenReaders.of([3, 2, 5], [[2, 2], [2, 2, 2], [9]], ["a", "b", "c"])
    assert (found.n_scans, found.n_readings, found.between.value, found.error.value) == (2, 5, 0.0, 0.5)
    assert BetweenReaders.of([3], [[2]], ["a"]) is None


def test_a_calibration_is_fitted_to_all_readers(cohort, tmp_path):
    known = ("--truth-counts", cohort / "wide.csv")
    assert _run("calibrate", cohort / "out", *known, "-o", tmp_path / "all.json") == 0
    written = json.loads((tmp_path / "all.json").read_text())
    assert f"{N} scans" in written["calibration"]["origin"]


def test_the_likelihood_of_readers_is_the_mean_of_theirs():
    rng = np.random.default_rng(0)
    tables = [rng.random(5) for _ in range(6)]
    readings = [[1, 2, 4], [0], [3, 3], [5, 1, 0], [2, 2], [1]]
    numbers = Numbers(0.8, -0.3, 0.5, 0.2, 0.1, 1.5, 0.2)
    truth = KnownTruth.of(tables, [of[0] for of in readings])
    likelihood = ReadersLikelihood(truth.read_by(readings))
    values, slopes = likelihood(numbers, 7)
    np.testing.assert_array_equal(likelihood.values(numbers, 7), values)
    for place, of in enumerate(readings):
        each = [CountLikelihood(KnownTruth.of(tables, [count] * len(tables)))(numbers, 7) for count in of]
        assert values[place] == pytest.approx(np.mean([value[place] for value, _ in each]))
        assert slopes[place] == pytest.approx(np.mean([slope[place] for _, slope in each], axis=0))
    assert truth.read_by([[one] for one in truth.counts]).readings is None
    assert truth.read_by(readings).counts.tolist() == [1, 0, 3, 5, 2, 1]


def test_what_another_reader_would_count_stands_beside_the_counts(cohort, tmp_path, capsys):
    known = ("--truth-counts", cohort / "wide.csv")
    assert _run("calibrate", cohort / "out", *known, "-o", tmp_path / "c.json") == 0
    pool = json.loads((tmp_path / "c.json").read_text())["pool"]
    assert (len(pool["by_reads"]), pool["n_scans"]) == (2, N)
    (tmp_path / "reads.csv").write_text("case,carl,slices\ns0,6,90\ns1,0,90\n")
    reads = ("--reads", tmp_path / "reads.csv", "--count-column", "carl")
    arguments = ("count", cohort / "d.csv", "-o", tmp_path / "out", *reads)
    calibrated = (*arguments, "--calibration", tmp_path / "c.json", "--report")
    assert _run(*calibrated) == 0
    found = {row["scan"]: row for row in _rows(tmp_path / "out" / "counts.tsv")}
    assert [(name, row["reads"]) for name, row in found.items() if row["reads"] != "n/a"] == [("s0", "6"), ("s1", "0")]
    means = {name: [row[f"count_mean_{of}"] for of in ("another_reader", "calibrated")] for name, row in found.items()}
    assert float(means["s0"][0]) > float(means["s0"][1])
    assert float(means["s1"][0]) < float(means["s1"][1])
    record = read_results(tmp_path / "out").record("s0")
    assert np.arange(len(record.pmf_another_reader)) @ record.pmf_another_reader == pytest.approx(float(means["s0"][0]))
    assert (tmp_path / "out" / "report.html").read_text().count("another reader, after") == 2
    (tmp_path / "reads.csv").write_text("case,carl,slices\ns0,5,90\ns1,0,90\n")
    assert _run(*calibrated, "--resume") == 2
    assert _run(*arguments, "--overwrite") == 2
    assert "fitted to several readers" in capsys.readouterr().err


def test_a_review_ends_in_what_another_reader_would_count(cohort, tmp_path):
    known = ("--truth-counts", cohort / "wide.csv")
    assert _run("calibrate", cohort / "out", *known, "-o", tmp_path / "c.json") == 0
    out = tmp_path / "out"
    assert _run("count", cohort / "d.csv", "-o", out, "--calibration", tmp_path / "c.json") == 0
    results = read_results(out)
    for name, accepted in (("Anna", 6), ("Ben", 5)):
        reader = SimulatedReader(results, name)
        for label in range(1, len(results.record("s0").lesions) + 1):
            reader.decide("s0", label, "lesion" if label <= accepted else "none")
        reader.done("s0")
        reader.decide("s1", 1, "lesion")  # and no more: it is not complete
    export_reviews(results)
    (row,) = _rows(out / "another_reader.tsv")
    assert (row["scan"], row["readers"], row["reads"]) == ("s0", "Anna, Ben", "6 5")
    assert (
        float(row["count_mean_another_reader"])
        > {one.name: one for one in results.counted}["s0"].counted.calibrated.count_mean
    )


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Maps of four lesions, and masks by two readers: anna draws one more than ben, who has not read the last scan."""
    folder = tmp_path_factory.mktemp("drawn")
    for number in range(N):
        values, by = np.zeros((4, 4, 17), np.float32), np.zeros((2, 4, 4, 17), np.uint8)
        for place in range(4):
            values[1:3, 1:3, 4 * place + 1 : 4 * place + 3] = 0.2 + 0.2 * place
            by[0, 1:3, 1:3, 4 * place + 1] = place >= number % 3
            by[1, 1:3, 1:3, 4 * place + 1] = place > number % 3
        save(folder / "maps" / f"s{number}.nii.gz", values)
        save(folder / "anna" / f"s{number}.nii.gz", by[0])
        if number < N - 1:
            save(folder / "ben" / f"s{number}.nii.gz", by[1])
    assert _run("count", folder / "maps", "-o", folder / "out") == 0
    return folder


def test_each_reader_may_have_a_folder_of_masks(drawn, tmp_path):
    both = tmp_path / "both"
    assert _run("evaluate", drawn / "out", "--truth", drawn / "anna", drawn / "ben", "-o", both) == 0
    found = json.loads((both / "evaluation.json").read_text())
    counts = [(4 - number % 3, 3 - number % 3) for number in range(N - 1)]
    readers = {scan["scan"]: scan["readers"] for scan in found["scans"]}
    assert [readers[f"s{number}"] for number in range(N)] == [*(f"{a} {b}" for a, b in counts), ""]
    assert (found["readers"]["n_readings"], found["readers"]["between"]["estimate"]) == (2 * (N - 1), 1.0)
    lesions = found["lesions"]
    assert lesions["readers"] == ["anna", "ben"]
    assert lesions["n_lesions"] == lesions["n_hit"] == sum(map(sum, counts)) + 4 - (N - 1) % 3
    header, *rows = (line.split("\t") for line in (both / "lesion_matches.tsv").read_text().splitlines())
    assert header[:3] == ["scan", "reader", "lesion"]
    assert sum(row[1] == "anna" for row in rows) - sum(row[1] == "ben" for row in rows) == N - 1 + 4 - (N - 1) % 3
    assert "(anna, ben)" in (both / "evaluation.html").read_text()
    assert _run("evaluate", drawn / "out", "--truth", drawn / "anna", "-o", tmp_path / "one") == 0
    alone = json.loads((tmp_path / "one" / "evaluation.json").read_text())
    assert "readers" not in alone
    assert "readers" not in alone["lesions"]


def test_a_calibration_takes_the_masks_of_several_readers(drawn, tmp_path, capsys):
    both = ("--truth", drawn / "anna", "--truth", drawn / "ben")
    assert _run("calibrate", drawn / "out", *both, "-o", tmp_path / "c.json") == 0
    assert json.loads((tmp_path / "c.json").read_text())["pool"]["n_scans"] == N - 1
    assert _run("calibrate", drawn / "out", *both, "--fit-from", "lesions", "-o", tmp_path / "l.json") == 2
    assert "masks of one reader" in capsys.readouterr().err
    known = ("--known", drawn / "anna", "--known", drawn / "ben")
    assert _run("calibrate", drawn / "maps", *known, "-o", tmp_path / "k.json") == 0
    assert json.loads((tmp_path / "k.json").read_text())["pool"]["n_scans"] == N - 1
    table = ("--known", drawn / "anna", "--known", tmp_path / "c.json")
    assert _run("calibrate", drawn / "maps", *table, "-o", tmp_path / "t.json") == 2
    assert "a folder of masks for each reader" in capsys.readouterr().err
