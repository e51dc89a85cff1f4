"""The command as people type it."""

import csv
import json
import re
import subprocess
import sys

import nibabel
import numpy as np
import pytest
from nifti_files import save

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.results.count_warnings import SPECKS
from lesioncount.results.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS
from lesioncount.results.scan_numbers import COUNT_COLUMNS, OPTIONAL_COUNT_COLUMNS


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_a_folder_becomes_tables(cohort, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["count", str(cohort), "-o", str(out), "--write=labels"]) == 0
    counts, lesions = rows(out / "counts.tsv"), rows(out / "lesions.tsv")
    assert list(counts[0]) == [name for name in COUNT_COLUMNS if name not in OPTIONAL_COUNT_COLUMNS]
    assert list(lesions[0]) == ["scan", *(name for name in LESION_COLUMNS if name not in OPTIONAL_LESION_COLUMNS)]
    assert [row["scan"] for row in counts] == [f"scan{i}" for i in range(6)]
    for row in counts:
        image = nibabel.load(cohort / f"{row['scan']}.nii.gz")
        expected = lc.count_lesions(np.asarray(image.dataobj), spacing_mm=(1, 1, 3))
        mine = [lesion for lesion in lesions if lesion["scan"] == row["scan"]]
        assert int(row["n_candidates"]) == len(mine) == len(expected.candidates)
        assert int(row["count_mode"]) == expected.distribution.mode()
        assert int(row["count_median"]) == expected.distribution.median()
        assert float(row["count_mean"]) == pytest.approx(expected.distribution.mean(), rel=1e-5)
        assert float(row["total_volume_mm3"]) == pytest.approx(expected.candidates.volume_mm3.sum(), rel=1e-5)
        assert int(row["cc_count"]) == lc.connected_component_count(np.asarray(image.dataobj))
        assert sum(float(lesion["variance_share"]) for lesion in mine) == pytest.approx(1, abs=1e-4)
        peak = [int(mine[0][f"peak_{axis}"]) for axis in "ijk"]
        assert [float(mine[0][f"peak_{axis}_mm"]) for axis in "xyz"] == [peak[0], peak[1], 3 * peak[2]]
        labels = nibabel.load(out / f"{row['scan']}_lesions.nii.gz")
        np.testing.assert_array_equal(np.asarray(labels.dataobj), expected.candidates.label_map())
        record = json.loads((out / f"{row['scan']}.json").read_text())
        np.testing.assert_allclose(record["pmf"], expected.distribution.pmf())
        assert record["settings"]["protocol"] == lc.CountingProtocol().to_dict()
    run = json.loads((out / "run.json").read_text())
    assert (run["n_ok"], run["n_failed"]) == (6, 0)
    assert len(run["inputs"][0]["sha256"]) == 64
    shown = capsys.readouterr()
    assert "6 scans counted" in shown.out
    assert str(out) in shown.out
    assert "6/6 scan5 ok" in shown.err


def test_options_make_the_protocol(cohort, tmp_path):
    (tmp_path / "mine.json").write_text('{"threshold": 0.2, "min_voxels": 2}')
    options = ["--protocol", str(tmp_path / "mine.json"), "--connectivity", "26", "--min-size", "6mm3", "--quiet"]
    assert main(["count", str(cohort / "scan0.nii.gz"), "-o", str(tmp_path / "out"), *options]) == 0
    record = json.loads((tmp_path / "out" / "scan0.json").read_text())
    expected = lc.CountingProtocol(threshold=0.2, connectivity=26, min_voxels=2, min_volume_mm3=6)
    assert lc.CountingProtocol.from_dict(record["settings"]["protocol"]) == expected


def test_peaks_are_rows_with_their_saddles(cohort, tmp_path):
    out, options = tmp_path / "out", ["--protocol", "peaks", "--min-persistence", "0.05", "--write=labels", "--quiet"]
    assert main(["count", str(cohort), "-o", str(out), *options, "--report"]) == 0
    protocol = lc.CountingProtocol(candidates="peaks", min_persistence=0.05)
    lesions = rows(out / "lesions.tsv")
    absent = ("member", "existence_calibrated", "region", "within", "within_mm", "on_list")
    assert list(lesions[0]) == ["scan", *(name for name in LESION_COLUMNS if name not in absent)]
    for scan in (f"scan{i}" for i in range(6)):
        image = nibabel.load(cohort / f"{scan}.nii.gz")
        expected = lc.count_lesions(np.asarray(image.dataobj), spacing_mm=(1, 1, 3), protocol=protocol)
        mine = [lesion for lesion in lesions if lesion["scan"] == scan]
        for row, lesion in enumerate(mine):
            peak, saddle = expected.candidates.peak_probability[row], expected.candidates.saddle_probability[row]
            assert float(lesion["peak_probability"]) == pytest.approx(peak, rel=1e-5)
            assert float(lesion["saddle_probability"]) == pytest.approx(saddle, rel=1e-5)
            assert float(lesion["existence"]) == pytest.approx(peak - saddle, rel=1e-4)
            index = [lesion[f"saddle_{axis}"] for axis in "ijk"]
            assert index == [str(i) if saddle else "n/a" for i in expected.candidates.saddle_index[row]]
        labels = nibabel.load(out / f"{scan}_lesions.nii.gz")
        np.testing.assert_array_equal(np.asarray(labels.dataobj), expected.candidates.label_map())
        record = json.loads((out / f"{scan}.json").read_text())
        np.testing.assert_allclose(record["pmf"], expected.distribution.pmf())
        assert record["settings"]["protocol"] == protocol.to_dict()
        assert record["count"]["cc_count"] == lc.connected_component_count(np.asarray(image.dataobj))


def test_persistence_of_regions_is_refused(cohort, tmp_path, capsys):
    assert main(["count", str(cohort), "-o", str(tmp_path / "out"), "--min-persistence", "0.1"]) == 2
    assert "--protocol peaks" in capsys.readouterr().err


def test_a_bad_scan_is_a_row_and_the_others_are_counted(cohort, tmp_path, capsys):
    (cohort / "scan2.nii.gz").write_bytes(b"no voxels")
    assert main(["count", str(cohort), "-o", str(tmp_path / "out"), "--quiet"]) == 1
    counts = rows(tmp_path / "out" / "counts.tsv")
    assert [row["status"] for row in counts] == ["ok", "ok", "failed", "ok", "ok", "ok"]
    assert "not a NIfTI file" in counts[2]["error"]
    assert "failed: scan2" in capsys.readouterr().err


def test_warnings_of_hard_maps_are_told(tmp_path, capsys):
    save(tmp_path / "mask.nii.gz", np.eye(6, dtype=np.uint8)[None])
    assert main(["count", str(tmp_path / "mask.nii.gz"), "-o", str(tmp_path / "out")]) == 0
    assert "warning: mask: This map is binary" in capsys.readouterr().out


def specks(path, n):
    """A map of n specks."""
    p = np.zeros((2 * n, 5, 5), np.float32)
    p[::2, 2, 2] = 0.4
    return save(path, p)


def test_a_warning_about_many_scans_is_said_once(tmp_path, capsys):
    for i in range(5):
        specks(tmp_path / "maps" / f"s{i}.nii.gz", 5 + i)
    calm = np.zeros((8, 9, 10), np.float32)
    calm[2:4, 2:4, 2:4] = 0.4
    save(tmp_path / "maps" / "calm.nii.gz", calm)
    assert main(["count", str(tmp_path / "maps"), "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert re.findall("^warning: .*", shown, re.MULTILINE) == [f"warning: 5 of 6 scans: {SPECKS}"]
    for i in range(5):
        (warning,) = json.loads((tmp_path / "out" / f"s{i}.json").read_text())["warnings"]
        assert warning.endswith(f"In this map: {5 + i} of {5 + i} candidates, {0.4 * (5 + i):.1f} of "
                                f"{0.4 * (5 + i):.1f} expected lesions.")  # fmt: skip
    assert json.loads((tmp_path / "out" / "calm.json").read_text())["warnings"] == []


def test_the_table_fits_80_columns_and_pipes(tmp_path, capsys, monkeypatch):
    for name in ("s", "a_name_that_is_much_longer_than_all_of_the_others_" * 2):
        specks(tmp_path / "maps" / f"{name}.nii.gz", 300)
    arguments = ["count", str(tmp_path / "maps"), "-o", str(tmp_path / "out"), "--overwrite"]
    assert main(arguments) == 0
    table = capsys.readouterr().out.partition("warning")[0].splitlines()
    assert len(table) == 3  # a scan a line, whatever reads it
    assert " ".join(table[0].split()) == "scan candidates CC > 0.5 mode median mean 90 % interval"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    table = plain.partition("warning")[0].splitlines()
    assert len(table) == 3  # a long name loses its middle
    assert max(map(len, table)) <= 80
    assert all("106 to 134" in line for line in table if "300" in line)


def test_a_map_without_lesions_is_a_result(tmp_path):
    save(tmp_path / "zero.nii.gz", np.zeros((4, 4, 4), np.float32))
    assert main(["count", str(tmp_path / "zero.nii.gz"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    row = rows(tmp_path / "out" / "counts.tsv")[0]
    assert (row["count_mode"], row["p_0"], row["total_volume_mm3"]) == ("0", "1", "0")
    assert rows(tmp_path / "out" / "lesions.tsv") == []


def test_names_stay_unique(tmp_path):
    for folder in ("a", "b"):
        save(tmp_path / "in" / folder / "map.nii.gz", np.full((3, 3, 3), 0.2, np.float32))
    assert main(["count", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert [row["scan"] for row in rows(tmp_path / "out" / "counts.tsv")] == ["a__map", "b__map"]
    assert [row["path"] for row in rows(tmp_path / "out" / "counts.tsv")] == ["a/map.nii.gz", "b/map.nii.gz"]


def test_one_scan_in_two_kinds_of_files_is_not_counted_twice(tmp_path, capsys):
    for name in ("map.nii.gz", "map.nii"):
        save(tmp_path / "in" / name, np.full((3, 3, 3), 0.2, np.float32))
    arguments = ["count", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 2
    assert re.search(
        r"map\.nii and .*map\.nii\.gz differ in their endings only.*--suffix \.nii\.gz", capsys.readouterr().err
    )
    assert main([*arguments, "--suffix", ".nii.gz"]) == 0


def test_globs_that_the_shell_did_not_expand(cohort, tmp_path):
    assert main(["count", str(cohort / "scan[01].nii.gz"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert len(rows(tmp_path / "out" / "counts.tsv")) == 2


def test_results_inside_the_input_folder_are_not_counted(cohort):
    arguments = ["count", str(cohort), "-o", str(cohort / "out"), "--write=labels", "--quiet", "--overwrite"]
    for _ in range(2):
        assert main(arguments) == 0
        assert len(rows(cohort / "out" / "counts.tsv")) == 6


def test_masks_by_name(cohort, tmp_path):
    inside = np.zeros((8, 9, 10), np.uint8)
    inside[0, 0, 0] = 1
    for i in range(6):
        save(tmp_path / "masks" / f"scan{i}.nii.gz", inside)
    arguments = ["count", str(cohort), "-o", str(tmp_path / "out"), "--mask", str(tmp_path / "masks"), "--quiet"]
    assert main(arguments) == 0
    assert {row["n_candidates"] for row in rows(tmp_path / "out" / "counts.tsv")} == {"0", "1"}
    (tmp_path / "masks" / "scan3.nii.gz").unlink()
    assert main([*arguments, "--overwrite"]) == 1
    assert "There is no mask of this scan in" in rows(tmp_path / "out" / "counts.tsv")[3]["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["count", "nothing.nii.gz", "-o", "out"], "does not exist"),
        (["count", "EMPTY", "-o", "out"], "no maps in the folder"),
        (["count", "COHORT", "-o", "out", "--threshold", "1.5"], r"threshold in \[0, 1\)"),
        (["count", "COHORT", "-o", "out", "--connectivity", "7"], "Connectivity 7 is unknown"),
        (["count", "COHORT", "-o", "out", "--protocol", "mine"], "no protocol 'mine'"),
        (["count", "COHORT", "-o", "out", "--protocol", "mine.json"], "cannot be read"),
        (["count", "COHORT", "-o", "out", "--mask", "nothing"], "mask nothing does not exist"),
        (["inspect", "nothing.nii"], "does not exist"),
    ],
)
def test_wrong_calls_say_what_to_do(arguments, message, cohort, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    words = {"COHORT": str(cohort), "EMPTY": "empty"}
    assert main([words.get(word, word) for word in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lesioncount: ")
    assert re.search(message, error)
    assert not (tmp_path / "out" / "counts.tsv").exists()


def test_results_are_not_overwritten_unasked(cohort, tmp_path, capsys):
    arguments = ["count", str(cohort), "-o", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*arguments, "--overwrite"]) == 0


@pytest.mark.parametrize(("text", "code"), [("1/255", 0), ("0.01", 0), ("none", 2), ("1/0", 2)])
def test_scales_may_be_fractions(text, code, tmp_path):
    save(tmp_path / "map.nii.gz", np.arange(64, dtype=np.uint8).reshape(4, 4, 4))
    arguments = ["count", str(tmp_path / "map.nii.gz"), "-o", str(tmp_path / "out"), "--scale", text, "--quiet"]
    if code == 2:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    else:
        assert main(arguments) == 0


def tables_and_records(out):
    return {path.name: path.read_bytes() for path in out.iterdir() if not path.name.startswith("run")}


def test_resume_does_what_is_missing_changed_or_failed(cohort, tmp_path):
    out = tmp_path / "out"
    arguments = ["count", str(cohort), "-o", str(out), "--quiet"]
    (cohort / "scan5.nii.gz").rename(tmp_path / "kept")
    (cohort / "scan5.nii.gz").write_bytes(b"broken")
    assert main(arguments) == 1
    (tmp_path / "kept").rename(cohort / "scan5.nii.gz")  # failed before
    (out / "scan1.json").unlink()  # missing
    save(cohort / "scan2.nii.gz", np.full((3, 3, 3), 0.3, np.float32))  # changed
    (out / "scan3.json").write_text("{")  # damaged
    untouched = {name: (out / f"{name}.json").stat().st_mtime_ns for name in ("scan0", "scan4")}
    assert main([*arguments, "--resume"]) == 0
    assert untouched == {name: (out / f"{name}.json").stat().st_mtime_ns for name in untouched}
    resumed = tables_and_records(out)
    assert main(["count", str(cohort), "-o", str(tmp_path / "fresh"), "--quiet"]) == 0
    fresh = tables_and_records(tmp_path / "fresh")
    assert resumed == fresh
    assert main([*arguments, "--resume", "--threshold", "0.3"]) == 2  # another protocol
    assert main([*arguments, "--overwrite", "--threshold", "0.3"]) == 0
    assert json.loads((out / "scan0.json").read_text())["settings"]["protocol"]["threshold"] == 0.3


def test_several_jobs_give_the_same_files(cohort, tmp_path):
    for jobs in ("1", "2"):
        assert main(["count", str(cohort), "-o", str(tmp_path / jobs), "--jobs", jobs, "--quiet"]) == 0
    one, two = (tables_and_records(tmp_path / jobs) for jobs in "12")
    assert one == two


def test_inspect_says_whether_a_map_can_be_counted(cohort, tmp_path, capsys):
    calm = np.zeros((8, 9, 10), np.float32)
    calm[2:4, 2:4, 2:4] = 0.4
    assert main(["inspect", str(save(tmp_path / "calm.nii", calm))]) == 0
    assert "verdict    a usable probability map: 1 candidate, 0.4 expected\n" in capsys.readouterr().out
    assert main(["inspect", str(cohort / "scan0.nii.gz")]) == 0
    shown = capsys.readouterr().out
    assert "can be counted, but think twice" in shown
    assert re.search(r"^warning    Candidates hold several components .*--threshold 0.5", shown, re.MULTILINE)
    save(tmp_path / "logits.nii", np.linspace(-9, 4, 64, dtype=np.float32).reshape(4, 4, 4))
    assert main(["inspect", str(tmp_path / "logits.nii")]) == 1
    shown = capsys.readouterr().out
    assert "cannot be counted" in shown
    assert "--logits" in shown
    save(tmp_path / "mask.nii", np.eye(6, dtype=np.uint8)[None])
    assert main(["inspect", str(tmp_path / "mask.nii")]) == 0
    assert "warning    This map is binary" in capsys.readouterr().out


def test_inspect_counts_peaks_where_asked_to(tmp_path, capsys):
    touching = np.zeros((5, 12), np.float32)
    touching[1:4, 1:6], touching[1:4, 6:11] = 0.3, 0.3
    touching[2, 3], touching[2, 8] = 0.9, 0.8
    np.save(tmp_path / "two.npy", touching)
    assert main(["inspect", str(tmp_path / "two.npy"), "--protocol", "peaks"]) == 0
    assert ": 2 candidates, 1.4 expected\n" in capsys.readouterr().out


def test_protocols_are_listed(capsys):
    assert main(["protocols"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in lc.PROTOCOLS)


def test_help_and_version_are_quick_and_light():
    code = "import sys; from lesioncount.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('scipy', 'torch', 'matplotlib', 'nibabel', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"lesioncount {lc.__version__}\n[]\n"


def test_no_command_prints_help(capsys):
    assert main([]) == 2
    assert "count the lesions in probability maps" in capsys.readouterr().out


def test_files_of_others_are_never_written_over(tmp_path, capsys):
    save(tmp_path / "sub-01.nii.gz", np.full((3, 3, 3), 0.2, np.float32))
    (tmp_path / "sub-01.json").write_text('{"EchoTime": 0.1}')  # a BIDS sidecar
    for option in ([], ["--overwrite"]):
        assert main(["count", str(tmp_path / "sub-01.nii.gz"), "-o", str(tmp_path), "--quiet", *option]) == 2
        assert "not a result of an earlier run" in capsys.readouterr().err
    assert "EchoTime" in (tmp_path / "sub-01.json").read_text()


def test_overwriting_leaves_nothing_of_the_run_before(cohort, tmp_path):
    out = tmp_path / "out"
    assert main(["count", str(cohort), "-o", str(out), "--quiet", "--write=labels"]) == 0
    assert main(["count", str(cohort / "scan0.nii.gz"), "-o", str(out), "--quiet", "--overwrite"]) == 0
    left = {path.name for path in out.iterdir()}
    assert left == {"counts.tsv", "lesions.tsv", "run.json", "runs.jsonl", "scan0.json"}


@pytest.mark.parametrize("names", [("s 1", "s_1"), ("run", "ran"), ("A", "a"), ("é", "è")])
def test_awkward_names_lose_no_scan(tmp_path, names):
    for name in names:
        save(tmp_path / "in" / f"{name}.nii.gz", np.full((3, 3, 3), 0.2, np.float32))
    assert main(["count", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    found = [row["scan"] for row in rows(tmp_path / "out" / "counts.tsv")]
    assert len(set(found)) == 2
    assert (tmp_path / "out" / "run.json").exists()


def test_the_same_file_is_counted_once(cohort, tmp_path, monkeypatch):
    monkeypatch.chdir(cohort.parent)
    given = ["cohort/scan0.nii.gz", str(cohort / "scan0.nii.gz"), "cohort"]
    assert main(["count", *given, "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert len(rows(tmp_path / "out" / "counts.tsv")) == 6


@pytest.mark.parametrize(
    "damage", [{"count": []}, {"lesions": 5}, {"lesions": [1]}, {"warnings": None}, {"scan": []}, {"count": {}}]
)
def test_records_that_make_no_sense_are_done_again(cohort, tmp_path, damage):
    out = tmp_path / "out"
    arguments = ["count", str(cohort / "scan0.nii.gz"), "-o", str(out), "--quiet"]
    assert main(arguments) == 0
    good = (out / "scan0.json").read_text()
    (out / "scan0.json").write_text(json.dumps(json.loads(good) | damage))
    assert main([*arguments, "--resume"]) == 0
    assert (out / "scan0.json").read_text() == good


def test_names_that_are_too_long_are_explained(tmp_path, capsys):
    for arguments in (["count", "x" * 300, "-o", str(tmp_path)], ["inspect", "x" * 300 + ".nii"]):
        assert main(arguments) == 2
        assert "cannot be looked at" in capsys.readouterr().err


def test_resume_and_overwrite_exclude_each_other(cohort, tmp_path):
    with pytest.raises(SystemExit):
        main(["count", str(cohort), "-o", str(tmp_path), "--resume", "--overwrite"])


def test_long_lists_are_cut_and_said_to_be(tmp_path, capsys):
    for i in range(25):
        (tmp_path / f"bad{i:02}.nii").write_bytes(b"no voxels")
        save(tmp_path / f"good{i:02}.nii.gz", np.full((2, 2, 2), 0.3, np.float32))
    assert main(["count", str(tmp_path), "-o", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr()
    assert "… and 5 more (-v lists all)\n" in shown.out
    assert "… and 5 more, see counts.tsv" in shown.err
    assert "25 failed" in shown.out


def test_an_interrupt_anywhere_is_130(cohort, tmp_path, monkeypatch, capsys):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("lesioncount.runs.count.count_file", interrupt)
    assert main(["count", str(cohort), "-o", str(tmp_path / "out")]) == 130
    assert "--resume goes on from here" in capsys.readouterr().err
    monkeypatch.setattr("lesioncount.cohort.scans.find_maps", interrupt)
    assert main(["count", str(cohort), "-o", str(tmp_path / "other")]) == 130


def test_what_nobody_expected_is_a_failed_scan_too(cohort, tmp_path, monkeypatch):
    def stumble(*_arguments, **_options):
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr("lesioncount.runs.count.count_file", stumble)
    assert main(["count", str(cohort), "-o", str(tmp_path / "out"), "--quiet"]) == 1
    assert {row["error"] for row in rows(tmp_path / "out" / "counts.tsv")} == {
        "unexpected ZeroDivisionError: by chance"
    }


def test_verbose_shows_where_an_error_came_from(tmp_path, capsys):
    assert main(["count", "nothing.nii", "-o", str(tmp_path), "-v"]) == 2
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.splitlines()[-1].startswith("lesioncount: nothing.nii")


def test_output_that_cannot_be_a_folder(cohort, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["count", str(cohort), "-o", str(tmp_path / "file")]) == 2
    assert "cannot be used" in capsys.readouterr().err
    for wrong in (["-o", ""], ["-o", "x", "--jobs", "0"]):
        with pytest.raises(SystemExit):
            main(["count", str(cohort), *wrong])


def test_inspect_counts_the_channels(tmp_path, rng, capsys):
    save(tmp_path / "two.nii.gz", rng.random((4, 5, 6, 2), dtype=np.float32) * np.float32(0.3))
    assert main(["inspect", str(tmp_path / "two.nii.gz"), "--channel", "1"]) == 0
    assert "4 × 5 × 6, one of 2 channels" in capsys.readouterr().out
    stored = nibabel.Nifti1Image(rng.random((4, 5, 6)) * 0.3, np.eye(4))
    stored.set_data_dtype(np.uint8)
    nibabel.save(stored, tmp_path / "scaled.nii.gz")
    assert main(["inspect", str(tmp_path / "scaled.nii.gz")]) == 0
    assert "uint8, times" in capsys.readouterr().out


def test_without_a_folder_counts_are_printed_and_nothing_is_written(cohort, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    scan = cohort / "scan0.nii.gz"
    assert main(["count", str(scan)]) == 0
    shown = capsys.readouterr().out
    assert str(lc.count_file(scan).result) in shown
    assert main(["count", str(cohort), "--threshold", "0.3"]) == 0
    assert "6 counted, 0 failed" in capsys.readouterr().out
    assert main(["count", str(scan), "--resume"]) == 2
    assert "--resume needs a folder for the results: -o FOLDER" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
