"""The cohort API: files → a table in memory, the same as the command writes."""

import json

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import LesionCountError, MapFileError, MissingExtraError
from lesioncount.runs import CountTable, Selection, Settings, count_batch
from lesioncount.trust.calibration import NOT_CHECKED
from lesioncount.trust.fitting import CalibrationFit


@pytest.fixture
def folder(tmp_path, rng):
    for i in range(3):
        np.save(tmp_path / f"s{i}.npy", (rng.random((5, 6, 7)) ** 6).astype(np.float32))
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    return tmp_path


def test_every_file_is_a_row_and_failures_say_why(folder):
    table = lc.count_files(folder)
    assert [row.name for row in table] == ["broken", "s0", "s1", "s2"]
    assert len(table) == 4
    assert [row.name for row in table.failed] == ["broken"]
    assert "not a numpy file" in table["broken"].error
    assert table["broken"].existence.tolist() == []
    with pytest.raises(LesionCountError, match="broken was not counted"):
        table["broken"].distribution.mean()
    for row in table.counted:
        alone = lc.count_file(row.path).result
        np.testing.assert_array_equal(row.existence, alone.existence)
        assert row.distribution.mean() == pytest.approx(alone.distribution.mean())
        assert row.count.count_mode == alone.distribution.mode()
        assert len(row.lesions) == len(alone.candidates)


def test_the_table_is_what_the_command_writes(folder):
    pandas = pytest.importorskip("pandas")
    results = count_batch([folder], folder / "out", settings=Settings(protocol=lc.CountingProtocol(threshold=0.3)))
    table = lc.count_files([folder / "*.npy"], threshold=0.3)
    for ours, name in ((table.to_dataframe(), "counts.tsv"), (table.lesions_to_dataframe(), "lesions.tsv")):
        written = pandas.read_csv(folder / "out" / name, sep="\t", na_values="n/a")
        kept = ours[written.columns]
        pandas.testing.assert_frame_equal(kept, written, check_dtype=False, rtol=1e-5)
    assert results.to_dataframe().equals(table.to_dataframe())
    read = lc.read_results(str(folder / "out"))
    pandas.testing.assert_frame_equal(read.lesions_to_dataframe(), table.lesions_to_dataframe())


def test_processes_change_nothing(folder):
    one, two = lc.count_files(folder), lc.count_files(folder, jobs=2)
    assert str(one) == str(two)
    assert one.to_json() == two.to_json()


def test_progress_is_told(folder):
    told = []
    lc.count_files(folder, progress=lambda row, done, of: told.append((row.name, done, of)))
    assert told == [("broken", 1, 4), ("s0", 2, 4), ("s1", 3, 4), ("s2", 4, 4)]


def test_json_rows(folder):
    read = json.loads(lc.count_files(folder).to_json())
    assert [scan["status"] for scan in read["scans"]] == ["failed", "ok", "ok", "ok"]
    assert read["scans"][1]["path"] == "s0.npy"


def test_what_is_printed(folder):
    table = lc.count_files(folder)
    lines = str(table).splitlines()
    assert lines[0].split() == ["scan", "candidates", "mode", "mean", "90", "%", "interval", "error"]
    assert lines[1].startswith("broken  failed")
    assert lines[-1] == "3 counted, 1 failed"
    assert repr(table["s0"]).startswith("FileCount(s0: mean ")
    html = table._repr_html_()
    assert html.count("<tr>") == 5
    many = CountTable(table.rows * 10)
    assert "… and 20 more; 30 counted, 10 failed" in str(many)


def test_a_stated_calibration_is_said_to_be_unchecked(folder):
    table = lc.count_files(folder, calibration=lc.Calibration(origin=f"a stated mean of 2, {NOT_CHECKED}: count"))
    assert str(table).count(NOT_CHECKED) == 1
    assert table._repr_html_().count(NOT_CHECKED) == 1
    assert NOT_CHECKED in table.to_dict()["scans"][1]["notes"]


def test_names_are_escaped_in_html(tmp_path):
    np.save(tmp_path / "a&b<i>.npy", np.full((3, 3), 0.3))
    assert "<i>" not in lc.count_files(tmp_path)._repr_html_()


def test_the_total_is_that_of_all_files(folder):
    table = lc.count_files(folder)
    assert table.total().mean() == pytest.approx(sum(row.existence.sum() for row in table))
    with pytest.raises(LesionCountError, match="no total"):
        CountTable(table.failed).total()


def test_masks_by_name_and_scans_without_one(folder, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    for i in range(2):
        np.save(masks / f"s{i}.npy", np.zeros((5, 6, 7), bool))
    table = lc.count_files(sorted(folder.glob("s*.npy")), mask=masks)
    assert [len(row.existence) for row in table.counted] == [0, 0]
    assert "There is no mask of this scan" in table["s2"].error
    with pytest.raises(MapFileError, match=r"mask|does not exist"):
        lc.count_files(folder, mask=tmp_path / "none")


def test_calibrated_counts(folder):
    fit = CalibrationFit(lc.Calibration(slope=1.0, offset=-2.0))
    table = lc.count_files(folder, calibration=fit)
    plain = lc.count_files(folder)
    for row, before in zip(table.counted, plain.counted, strict=True):
        assert row.distribution.mean() < before.distribution.mean()
        assert row.count.count_mean == pytest.approx(row.distribution.mean())
    assert table.total().mean() < plain.total().mean()


def test_nothing_there(tmp_path):
    with pytest.raises(MapFileError, match="does not exist"):
        lc.count_files(tmp_path / "none.npy")
    with pytest.raises(MapFileError, match="no maps in the folder"):
        lc.count_files(tmp_path)
    with pytest.raises(KeyError, match="no scan 'x'"):
        CountTable(())["x"]


def test_without_pandas_the_message_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[notebook\]'"):
        lc.count_files(folder).to_dataframe()


def test_scans_of_patients_keep_their_names_and_may_be_chosen(tmp_path, rng):
    for name in ("sub-01/ses-01/prob.npy", "sub-02/ses-01/prob.npy", "sub-02/ses-01/other.npy"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / name, rng.random((4, 5, 6)))
    table = lc.count_files(tmp_path, selection=Selection(suffix="prob"))
    assert [row.name for row in table] == ["sub-01__ses-01__prob", "sub-02__ses-01__prob"]
    pytest.importorskip("pandas", reason="needs the extra [notebook]")
    for frame in (table.to_dataframe(), table.lesions_to_dataframe()):
        assert set(frame["participant_id"]) == {"sub-01", "sub-02"}
