"""A folder of comparisons: complete, resumed, replaced, and never over the files of others."""

import csv
import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from nifti_files import save
from runs.small_cohort import PATIENTS, dataset, die_of_p2, folders, lesions

from lesioncount.changes.lesion_changes import compare
from lesioncount.errors import CalibrationError, MapError, MapFileError
from lesioncount.protocol import CountingProtocol
from lesioncount.results.run_file import find_run
from lesioncount.runs import (
    ChangeSettings,
    CourseSelection,
    Selection,
    Settings,
    compare_batch,
    count_batch,
    read_changes,
)
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit

AFFINE = np.eye(4)


@pytest.fixture
def times(tmp_path):
    return folders(tmp_path)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def rows(path):
    with Path(path).open() as table:
        return list(csv.DictReader(table, delimiter="\t"))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("run")}


class TestWhatIsWritten:
    def test_numbers_are_those_of_two_maps_compared_in_memory(self, times, out):
        results = compare_batch(times, out)
        assert [course.name for course in results.compared] == list(PATIENTS)
        for course, (before, after, _) in zip(results.compared, PATIENTS.values(), strict=True):
            expected = compare(lesions(*before), lesions(*after), spacing_mm=(1, 1, 1))
            for kind in ("new", "gone", "persisting"):
                count = course.pairs[0].counts[kind]
                distribution = getattr(expected, kind)
                np.testing.assert_allclose(count.pmf, distribution.pmf(), atol=1e-12)
                assert count.numbers.raw.count_mean == pytest.approx(distribution.mean())

    def test_the_table_of_changes(self, times, out):
        compare_batch(times, out)
        table = {row["pair"]: row for row in rows(out / "changes.tsv")}
        assert list(table) == list(PATIENTS)
        first = table["p1"]
        assert (first["patient"], first["before"], first["after"], first["status"]) == ("p1", "1", "2", "ok")
        assert (first["n_candidates_before"], first["n_candidates_after"]) == ("2", "2")
        assert float(first["new_mean"]) == pytest.approx(0.7)
        assert float(first["new_p_any"]) == pytest.approx(0.7)
        assert float(first["gone_mean"]) == pytest.approx(0.8)
        assert float(first["persisting_mean"]) == pytest.approx(0.9)
        assert (first["new_components"], first["gone_components"], first["persisting_components"]) == ("1", "1", "1")
        assert float(first["tolerance_mm"]) == 2
        assert first["path_before"] == str(times[0] / "p1.nii.gz")
        assert "error" not in first
        assert "notes" not in first
        assert "new_mean_calibrated" not in first
        assert float(table["p2"]["new_mean"]) == 0

    def test_the_table_of_lineages(self, times, out):
        compare_batch(times, out)
        table = [row for row in rows(out / "lineages.tsv") if row["patient"] == "p1"]
        assert [(row["lineage"], row["session"], row["change"]) for row in table] == [
            ("1", "1", "n/a"), ("1", "2", "persisting"),
            ("2", "1", "n/a"), ("2", "2", "gone"),
            ("3", "1", "n/a"), ("3", "2", "new"),
        ]  # fmt: skip
        assert [row["n_candidates"] for row in table] == ["1", "1", "1", "0", "0", "1"]
        assert [row["n_voxels"] for row in table] == ["8", "8", "8", "0", "0", "8"]
        assert [float(row["existence"]) for row in table] == pytest.approx([0.9, 0.9, 0.8, 0, 0, 0.7])
        assert [float(row["volume_mm3"]) for row in table] == [8, 8, 8, 0, 0, 8]

    def test_three_sessions_are_two_pairs_and_one_lineage_through_all(self, tmp_path, out):
        results = compare_batch([dataset(tmp_path / "data", ("m0", "m6", "m12"))], out)
        table = {row["pair"]: row for row in rows(out / "changes.tsv")}
        assert [one for one in table if one.startswith("sub-p1")] == [
            "sub-p1__ses-m0__ses-m6",
            "sub-p1__ses-m6__ses-m12",
        ]
        assert float(table["sub-p1__ses-m6__ses-m12"]["new_mean"]) == pytest.approx(0, abs=1e-6)
        assert table["sub-p1__ses-m0__ses-m6"]["participant_id"] == "sub-p1"
        stays = [row for row in rows(out / "lineages.tsv") if (row["patient"], row["lineage"]) == ("sub-p1", "1")]
        assert [row["change"] for row in stays] == ["n/a", "persisting", "persisting"]
        assert len(results.distributions("new")) == 6

    def test_the_middle_session_knows_both_sides(self, tmp_path, out):
        results = compare_batch([dataset(tmp_path / "data", ("1", "2", "3"))], out)
        first, middle, last = results.record("sub-p1").sessions
        assert all(one.p_gone is not None and one.p_new is not None for one in middle.lesions)
        assert all(one.p_new is None and one.new_before is None and one.new_at is None for one in first.lesions)
        assert all(one.p_gone is None and one.gone_after is None and one.gone_at is None for one in last.lesions)

    def test_what_is_read_back_is_what_was_written(self, times, out):
        results = compare_batch(times, out)
        again = read_changes(out)
        for name in ("kind", "settings", "run", "versions", "started", "alone"):
            assert getattr(again.run, name) == getattr(results.run, name)
        assert [course.name for course in again.courses] == list(PATIENTS)
        for before, after in zip(results.courses, again.courses, strict=True):
            assert before.to_json() == after.to_json()
        for kind in ("new", "gone", "persisting"):
            assert {name: one.mean() for name, one in again.distributions(kind).items()} == {
                name: one.mean() for name, one in results.distributions(kind).items()
            }

    def test_two_jobs_write_the_same_bytes_as_one(self, tmp_path, times):
        settings = ChangeSettings(save_labels=True)
        compare_batch(times, tmp_path / "one", settings=settings)
        compare_batch(times, tmp_path / "two", settings=settings, jobs=2)
        assert contents(tmp_path / "one") == contents(tmp_path / "two")

    def test_progress_is_told_of_each_patient(self, times, out):
        told = []
        compare_batch(times, out, progress=lambda record, done, total: told.append((record.name, done, total)))
        assert told == [("p1", 1, 3), ("p2", 2, 3), ("p3", 3, 3)]

    def test_whoever_shows_a_patient_gets_the_maps(self, times, out):
        shown = []
        compare_batch(times, out, show=lambda folder, course, record, maps: shown.append((
            folder.path, course.name, record.name, len(record.sessions[0].lesions), len(maps.sessions))))  # fmt: skip
        assert shown == [(out, "p1", "p1", 2, 2), (out, "p2", "p2", 1, 2), (out, "p3", "p3", 0, 2)]

    def test_nothing_hidden_is_left(self, times, out):
        compare_batch(times, out, settings=ChangeSettings(save_labels=True))
        assert not [path.name for path in out.iterdir() if path.name.startswith(".")]

    def test_patients_with_one_map_are_in_the_run(self, times, out):
        save(times[0] / "p9.nii.gz", lesions(0.5), AFFINE)
        assert compare_batch(times, out).run.alone == ("p9",)
        assert read_changes(out).run.alone == ("p9",)

    def test_data_frames(self, times, out):
        pytest.importorskip("pandas")
        results = compare_batch(times, out)
        assert results.to_dataframe()["pair"].tolist() == list(PATIENTS)
        assert results.lineages_to_dataframe()["lineage"].max() == 3


class TestLabelMaps:
    def labels(self, out, name):
        return np.asarray(nibabel.load(out / name).dataobj)

    def test_values_are_lineages_and_kinds_of_change(self, times, out):
        compare_batch(times, out, settings=ChangeSettings(save_labels=True))
        before, after = (self.labels(out, f"p1__{time}_lineages.nii.gz") for time in (1, 2))
        at = [(1, 1, 2), (1, 6, 2), (1, 11, 2)]  # stays, goes, comes
        assert [before[one] for one in at] == [1, 2, 0]
        assert [after[one] for one in at] == [1, 0, 3]
        changes = self.labels(out, "p1_changes.nii.gz")
        assert [changes[one] for one in at] == [2, 3, 1]
        assert np.unique(changes).tolist() == [0, 1, 2, 3]
        assert np.count_nonzero(changes) == 24

    def test_names_have_the_sessions(self, tmp_path, out):
        compare_batch([dataset(tmp_path / "data")], out, settings=ChangeSettings(save_labels=True))
        assert {path.name for path in out.glob("sub-p1*.nii.gz")} == {
            "sub-p1__ses-01_lineages.nii.gz",
            "sub-p1__ses-02_lineages.nii.gz",
            "sub-p1__ses-01__ses-02_changes.nii.gz",
        }

    def test_they_lie_on_the_grid_of_the_last_session(self, tmp_path, out):
        other = np.diag([2.0, 2.0, 2.0, 1.0])
        save(tmp_path / "a.nii.gz", lesions(0.9)[::2, ::2, ::2], other)
        save(tmp_path / "b.nii.gz", lesions(0.9), AFFINE)
        compare_batch([tmp_path / "a.nii.gz", tmp_path / "b.nii.gz"], out, settings=ChangeSettings(save_labels=True))
        for path in out.glob("*.nii.gz"):
            assert nibabel.load(path).shape == lesions().shape
            np.testing.assert_array_equal(nibabel.load(path).affine, AFFINE)

    def test_without_the_option_those_of_an_earlier_run_go(self, times, out):
        compare_batch(times, out, settings=ChangeSettings(save_labels=True))
        assert len(list(out.glob("*.nii.gz"))) == 9
        compare_batch(times, out, overwrite=True)
        assert not list(out.glob("*.nii.gz"))

    def test_those_of_patients_and_sessions_that_are_gone_go_with_them(self, tmp_path, out):
        data, settings = dataset(tmp_path / "data", ("1", "2", "3")), ChangeSettings(save_labels=True)
        compare_batch([data], out, settings=settings)
        for path in [*data.glob("sub-p1/ses-3/anat/*"), *data.glob("sub-p2/*/anat/*")]:
            path.unlink()
        compare_batch([data], out, settings=settings, overwrite=True)
        compare_batch([data], tmp_path / "fresh", settings=settings)
        assert contents(out) == contents(tmp_path / "fresh")

    def test_a_label_map_that_was_corrected_is_kept(self, times, out):
        settings = ChangeSettings(save_labels=True)
        compare_batch(times, out, settings=settings)
        corrected = save(out / "p1_changes.nii.gz", np.ones(lesions().shape, np.uint8)).read_bytes()
        compare_batch(times, out, settings=settings, resume=True)
        assert (out / "p1_changes.nii.gz").read_bytes() == corrected
        with pytest.raises(MapFileError, match=r"p1_changes\.nii\.gz is not a result"):
            compare_batch(times, out, settings=settings, overwrite=True)
        assert (out / "p1_changes.nii.gz").read_bytes() == corrected

    def test_one_of_somebody_else_is_not_replaced(self, times, out):
        mine = save(out / "p1__1_lineages.nii.gz", np.ones((3, 3, 3), np.uint8)).read_bytes()
        with pytest.raises(MapFileError, match="is not a result of an earlier run"):
            compare_batch(times, out, settings=ChangeSettings(save_labels=True))
        compare_batch(times, out)
        assert (out / "p1__1_lineages.nii.gz").read_bytes() == mine

    def test_of_a_patient_that_fails_later_none_are_left(self, times, out):
        settings = ChangeSettings(save_labels=True)
        compare_batch(times, out, settings=settings)
        (times[1] / "p1.nii.gz").write_bytes(b"broken")
        results = compare_batch(times, out, settings=settings, resume=True)
        assert [course.name for course in results.failed] == ["p1"]
        assert not list(out.glob("p1*.nii.gz"))
        assert len(list(out.glob("p2*.nii.gz"))) == 3


class TestResume:
    def stamps(self, out):
        return {name: (out / f"{name}.json").stat().st_mtime_ns for name in PATIENTS}

    def changed(self, out, before):
        return [name for name, stamp in self.stamps(out).items() if stamp != before[name]]

    def test_what_is_unchanged_is_kept(self, times, out):
        compare_batch(times, out)
        before, tables = self.stamps(out), contents(out)
        results = compare_batch(times, out, resume=True)
        assert self.changed(out, before) == []
        assert contents(out) == tables
        assert [course.name for course in results.compared] == list(PATIENTS)

    @pytest.mark.parametrize("time", [0, 1])
    def test_a_changed_map_is_compared_again(self, times, out, time):
        compare_batch(times, out)
        before = self.stamps(out)
        save(times[time] / "p2.nii.gz", lesions(0.4, 0.3), AFFINE)
        compare_batch(times, out, resume=True)
        assert self.changed(out, before) == ["p2"]

    @pytest.mark.parametrize(
        "settings",
        [
            ChangeSettings(coupling=1.0),
            ChangeSettings(tolerance_mm=1.0),
            ChangeSettings(CountingProtocol(0.2)),
            ChangeSettings(calibrations=(CalibrationFit(Calibration(0.5, counted="new")),)),
        ],
    )
    def test_other_settings_are_refused_unless_all_is_replaced(self, times, out, settings):
        compare_batch(times, out)
        before = self.stamps(out)
        with pytest.raises(MapFileError, match="was made with other settings"):
            compare_batch(times, out, settings=settings, resume=True)
        assert self.changed(out, before) == []
        compare_batch(times, out, settings=settings, overwrite=True)
        assert self.changed(out, before) == list(PATIENTS)
        assert read_changes(out).run.settings == settings.recorded

    def test_label_maps_that_were_not_asked_for_before_are_made(self, times, out):
        compare_batch(times, out)
        before = self.stamps(out)
        compare_batch(times, out, settings=ChangeSettings(save_labels=True), resume=True)
        assert self.changed(out, before) == list(PATIENTS)

    def test_a_mask_that_changes_compares_again_and_one_that_comes_is_refused(self, times, out, tmp_path):
        mask = save(tmp_path / "mask.nii.gz", np.ones(lesions().shape, np.uint8), AFFINE)
        compare_batch(times, out, mask=mask)
        before = self.stamps(out)
        save(mask, np.full(lesions().shape, 2, np.uint8), AFFINE)
        compare_batch(times, out, mask=mask, resume=True)
        assert self.changed(out, before) == list(PATIENTS)
        with pytest.raises(MapFileError, match="mask is none instead of given"):
            compare_batch(times, out, resume=True)

    def test_a_label_map_that_was_removed_is_painted_again(self, times, out):
        settings = ChangeSettings(save_labels=True)
        compare_batch(times, out, settings=settings)
        (out / "p3__2_lineages.nii.gz").unlink()
        before = self.stamps(out)
        compare_batch(times, out, settings=settings, resume=True)
        assert self.changed(out, before) == ["p3"]
        assert (out / "p3__2_lineages.nii.gz").exists()

    def test_a_patient_that_comes_is_added(self, times, out):
        compare_batch(times, out)
        for time in times:
            save(time / "p4.nii.gz", lesions(0.5), AFFINE)
        before = self.stamps(out)
        assert len(compare_batch(times, out, resume=True).compared) == 4
        assert self.changed(out, before) == []

    def test_a_third_session_is_added_to_a_course(self, tmp_path, out):
        data = dataset(tmp_path / "data", ("1", "2"))
        compare_batch([data], out)
        dataset(tmp_path / "data", ("1", "2", "3"))
        results = compare_batch([data], out, resume=True)
        assert [len(course.pairs) for course in results.compared] == [2, 2, 2]

    def test_a_failure_is_tried_again(self, times, out):
        whole = (times[1] / "p2.nii.gz").read_bytes()
        (times[1] / "p2.nii.gz").write_bytes(whole[:50])
        assert len(compare_batch(times, out).failed) == 1
        (times[1] / "p2.nii.gz").write_bytes(whole)
        assert len(compare_batch(times, out, resume=True).failed) == 0

    def test_a_map_that_is_gone_since_is_a_failure(self, times, out, tmp_path):
        (tmp_path / "pairs.csv").write_text(f"baseline,followup\n{times[0]}/p1.nii.gz,{times[1]}/p1.nii.gz\n")
        selection = CourseSelection(pairs=tmp_path / "pairs.csv")
        compare_batch([], out, selection=selection)
        (times[0] / "p1.nii.gz").unlink()
        with pytest.raises(MapFileError, match="does not exist"):
            compare_batch([], out, selection=selection, resume=True)

    @pytest.mark.parametrize("text", ["", "{}", "[1, 2", '{"format": 1, "kind": "changes", "patient": "p1"}'])
    def test_a_damaged_record_is_made_again(self, times, out, text):
        compare_batch(times, out)
        whole = contents(out)
        (out / "p1.json").write_text(text)
        compare_batch(times, out, resume=True)
        assert contents(out) == whole

    def test_a_name_does_not_pass_to_other_maps(self, times, out, tmp_path):
        compare_batch(times, out)
        others = folders(tmp_path / "others")
        for folder in others:
            for path in folder.iterdir():
                save(path, lesions(0.35, 0.45), AFFINE)
        with pytest.raises(MapFileError, match=r"under the name p1, which .*others.*would take over"):
            compare_batch(others, out, resume=True)
        assert len(compare_batch(others, out, overwrite=True).compared) == 3

    def test_maps_that_were_moved_keep_their_results(self, times, out, tmp_path):
        compare_batch(times, out)
        before = self.stamps(out)
        moved = [time.rename(tmp_path / f"moved{place}") for place, time in enumerate(times)]
        compare_batch(moved, out, resume=True)
        assert self.changed(out, before) == []


class TestWhoseFolder:
    def test_results_of_an_earlier_run_are_not_touched_unasked(self, times, out):
        compare_batch(times, out)
        before = contents(out)
        with pytest.raises(MapFileError, match=r"holds the results of an earlier run.*--resume.*--overwrite"):
            compare_batch(times, out)
        assert contents(out) == before

    def test_overwriting_compares_all_again_and_removes_who_is_gone(self, times, out):
        compare_batch(times, out)
        for time in times:
            (time / "p2.nii.gz").unlink()
        compare_batch(times, out, overwrite=True)
        assert not (out / "p2.json").exists()
        assert [row["pair"] for row in rows(out / "changes.tsv")] == ["p1", "p3"]

    @pytest.mark.parametrize("name", ["run.json", "changes.tsv", "lineages.tsv", "p1.json"])
    @pytest.mark.parametrize("how", [{}, {"resume": True}, {"overwrite": True}])
    def test_files_of_others_are_never_replaced(self, times, out, name, how):
        out.mkdir()
        (out / name).write_text("mine")
        with pytest.raises(MapFileError, match=f"{name} is not a result of an earlier run"):
            compare_batch(times, out, **how)
        assert {path.name: path.read_text() for path in out.iterdir()} == {name: "mine"}

    def test_a_table_that_was_edited_is_kept(self, times, out):
        compare_batch(times, out)
        (out / "changes.tsv").write_text("mine")
        for how in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(MapFileError, match=r"changes\.tsv is not a result"):
                compare_batch(times, out, **how)
        assert (out / "changes.tsv").read_text() == "mine"

    def test_files_of_others_beside_ours_stay(self, times, out):
        compare_batch(times, out)
        (out / "notes.json").write_text("{}")
        (out / "p9_changes.nii.gz").write_bytes(b"mine")
        compare_batch(times, out, overwrite=True)
        assert (out / "notes.json").read_text() == "{}"
        assert (out / "p9_changes.nii.gz").read_bytes() == b"mine"

    @pytest.mark.parametrize("how", [{}, {"resume": True}, {"overwrite": True}])
    def test_the_folder_of_a_count_is_refused(self, times, out, how):
        count_batch([times[0]], out)
        before = contents(out)
        with pytest.raises(MapFileError, match="not those of lesioncount compare"):
            compare_batch(times, out, **how)
        assert contents(out) == before

    @pytest.mark.parametrize("how", [{}, {"resume": True}, {"overwrite": True}])
    def test_the_folder_of_a_comparison_is_refused_by_a_count(self, times, out, how):
        compare_batch(times, out)
        before = contents(out)
        with pytest.raises(MapFileError, match="not those of lesioncount count"):
            count_batch([times[0]], out, **how)
        assert contents(out) == before

    def test_a_run_that_was_damaged_is_not_replaced(self, times, out):
        compare_batch(times, out)
        (out / "run.json").write_text((out / "run.json").read_text()[:100])
        for how in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(MapFileError, match=r"run\.json is not a result of an earlier run as lesioncount wrote"):
                compare_batch(times, out, **how)

    def test_maps_in_the_folder_of_results_are_no_inputs(self, times):
        """Label maps of an earlier run lie beside the maps."""
        root = times[0].parent
        data = dataset(root / "data")
        settings = ChangeSettings(save_labels=True)
        first = compare_batch([data], data / "results", settings=settings)
        again = compare_batch([data], data / "again", settings=settings)
        assert [course.name for course in first.courses] == [course.name for course in again.courses]

    def test_two_runs_in_one_folder_at_once(self, times, out):
        from lesioncount.folder.output import OutputFolder

        with OutputFolder(out).alone(), pytest.raises(MapFileError, match="is in use by"):
            compare_batch(times, out)


class TestFailures:
    def test_a_bad_map_is_a_row_and_the_others_are_compared(self, times, out):
        (times[1] / "p2.nii.gz").write_bytes(b"no map at all")
        results = compare_batch(times, out)
        assert [course.name for course in results.failed] == ["p2"]
        failed = [row for row in rows(out / "changes.tsv") if row["status"] == "failed"]
        assert [row["pair"] for row in failed] == ["p2"]
        assert "p2.nii.gz" in failed[0]["error"]
        assert failed[0]["new_mean"] == "n/a"
        assert json.loads((out / "p2.json").read_text())["status"] == "failed"
        again = read_changes(out)
        assert [course.error for course in again.failed] == [course.error for course in results.failed]
        assert find_run(out).known["p2"].paths == tuple(str(time / "p2.nii.gz") for time in times)

    def test_a_scan_without_its_mask_fails(self, times, out, tmp_path):
        for name in ("p1", "p2"):
            save(tmp_path / "masks" / f"{name}.nii.gz", np.ones(lesions().shape, np.uint8), AFFINE)
        results = compare_batch(times, out, mask=tmp_path / "masks")
        assert [(one.name, "no mask of this scan" in one.error) for one in results.failed] == [("p3", True)]

    def test_a_file_where_the_folder_should_be(self, times, out):
        out.write_text("mine")
        with pytest.raises(MapFileError, match="cannot be used"):
            compare_batch(times, out)
        assert out.read_text() == "mine"

    def test_a_folder_where_a_record_should_be_is_refused(self, times, out):
        out.mkdir()
        compare_batch([time / "p1.nii.gz" for time in times], out)
        (out / "p2.json").mkdir()
        with pytest.raises(MapFileError, match=r"p2\.json is not a result"):
            compare_batch(times, out, resume=True)

    def test_a_process_that_dies_takes_one_patient_with_it(self, times, out):
        results = compare_batch(times, out, jobs=2, show=die_of_p2)
        assert [course.name for course in results.compared] == ["p1", "p3"]
        assert "the process that compared it died" in results.failed[0].error
        assert results.failed[0].paths == tuple(str(time / "p2.nii.gz") for time in times)

    def test_a_record_that_cannot_be_written_is_a_failure(self, times, out):
        def be_in_the_way(record, _done, _total):
            if record.name == "p1":
                (out / "p2.json").mkdir()

        results = compare_batch(times, out, progress=be_in_the_way)
        assert [(one.name, "is not a result of an earlier run" in one.error) for one in results.failed] == [
            ("p2", True)
        ]
        assert [row["status"] for row in rows(out / "changes.tsv")] == ["ok", "failed", "ok"]

    def test_a_label_map_that_cannot_be_replaced_is_a_failure(self, times, out):
        settings = ChangeSettings(save_labels=True)
        compare_batch(times, out, settings=settings)
        corrected = save(out / "p1_changes.nii.gz", np.ones(lesions().shape, np.uint8)).read_bytes()
        save(times[1] / "p1.nii.gz", lesions(0.9, 0.3), AFFINE)
        results = compare_batch(times, out, settings=settings, resume=True)
        assert [(one.name, "p1_changes.nii.gz is not a result" in one.error) for one in results.failed] == [
            ("p1", True)
        ]
        assert (out / "p1_changes.nii.gz").read_bytes() == corrected

    def test_a_link_that_leads_nowhere_since(self, times, out):
        compare_batch(times, out)
        (times[1] / "p2.nii.gz").unlink()
        (times[1] / "p2.nii.gz").symlink_to(times[1] / "gone.nii.gz")
        assert [one.name for one in compare_batch(times, out, resume=True).failed] == ["p2"]

    def test_an_interruption_keeps_what_was_finished(self, times, out):
        def stop(record, _done, _total):
            if record.name == "p2":
                raise KeyboardInterrupt

        results = compare_batch(times, out, progress=stop)
        assert results.interrupted
        assert [course.name for course in results.courses] == ["p1", "p2"]
        assert read_changes(out).interrupted
        assert not compare_batch(times, out, resume=True).interrupted

    def test_maps_of_one_patient_that_do_not_overlap(self, times, out):
        far = np.eye(4)
        far[0, 3] = 400
        save(times[0] / "p3.nii.gz", lesions(0.5), far)
        results = compare_batch(times, out)
        assert "do not overlap in space" in results.failed[0].error

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            (ChangeSettings(coupling=11), MapError, "a coupling from 0 to 10, but got 11"),
            (ChangeSettings(tolerance_mm=-1), MapError, "a tolerance from 0 to 50 mm, but got -1"),
            (ChangeSettings(tolerance_mm=float("nan")), MapError, "a tolerance from 0 to 50"),
            (ChangeSettings(conformal=True), CalibrationError, "Guaranteed intervals need a calibration"),
        ],
    )
    def test_settings_that_make_no_sense_write_nothing(self, times, out, settings, error, message):
        with pytest.raises(error, match=message):
            compare_batch(times, out, settings=settings)
        assert not out.exists()

    def test_nothing_to_compare_writes_nothing(self, times, out):
        with pytest.raises(MapFileError, match="Whose scan"):
            compare_batch([times[0]], out)
        assert not out.exists()


def test_a_comparison_reads_as_settings_say(tmp_path, out):
    for time, heights in (("a", (0.9, 0.0)), ("b", (0.9, 0.6))):
        stored = np.round(lesions(*heights) * 255).astype(np.uint8)
        save(tmp_path / time / "p.nii.gz", stored, AFFINE)
    results = compare_batch([tmp_path / "a", tmp_path / "b"], out, settings=ChangeSettings(scale=1 / 255))
    assert results.compared[0].pairs[0].counts["new"].numbers.raw.count_mean == pytest.approx(153 / 255)


def test_the_selection_is_passed_on(times, out):
    results = compare_batch(times, out, selection=CourseSelection(Selection(suffix="p1")))
    assert [course.name for course in results.courses] == ["p1"]


def test_counts_are_not_read_as_changes(times, out):
    count_batch([times[0]], out, settings=Settings())
    with pytest.raises(MapFileError, match="Expected the results of a comparison"):
        read_changes(out)
