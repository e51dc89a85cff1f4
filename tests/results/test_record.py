"""Records, summaries and runs: typed, and the same after they were written and read back."""

import json

import numpy as np
import pytest
from msgspec.structs import replace
from nifti_files import save

from lesioncount.folder.atomic import certified, is_certified_text
from lesioncount.folder.plain import read_json, typed
from lesioncount.protocol import CountingProtocol
from lesioncount.results.record import read_record
from lesioncount.results.recorded import Recorded
from lesioncount.results.run_file import find_run
from lesioncount.runs import Settings, count_batch, read_results
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit


@pytest.fixture
def maps(tmp_path, rng):
    for member in ("a", "b"):
        for i in range(3):
            save(tmp_path / member / f"s{i}.nii.gz", (rng.random((8, 9, 10)) ** 4 * 0.7).astype(np.float32))
    return tmp_path


@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize(("calibrated", "candidates"), [(False, "regions"), (True, "regions"), (False, "peaks")])
def test_what_is_read_back_is_what_was_counted(maps, members, calibrated, candidates):
    fit = CalibrationFit(Calibration.for_positive_weight(3)) if calibrated else None
    settings = Settings(CountingProtocol(candidates=candidates), calibration=fit)
    inputs = [maps / "a", maps / "b"] if members else [maps / "a"]
    results = count_batch(inputs, maps / "out", settings=settings, members=members)
    again = read_results(maps / "out")
    assert again.run.settings == results.run.settings == settings.recorded
    assert again.run.status == "finished"
    for before, after in zip(results.scans, again.scans, strict=True):
        for name in ("name", "error", "files", "map", "numbers", "members", "warnings", "n_dropped"):
            assert getattr(before, name) == getattr(after, name)
        assert len(before.tables) == len(after.tables) == (2 if members else 1)
        for a, b in zip(before.tables, after.tables, strict=True):
            assert a.names == b.names == (("peak", "saddle") if candidates == "peaks" else ("peak",))
            np.testing.assert_array_equal(a.values, b.values)
        record = again.record(before.name)
        written = json.loads((maps / "out" / f"{before.name}.json").read_text())
        assert json.loads(record.to_json()) | {"checksum": written["checksum"]} == written
        assert len(record.lesions) == sum(map(len, before.tables))
        assert (record.lesions[0].existence_calibrated is not None) is calibrated
    assert again.has_members is members


@pytest.mark.parametrize(
    "wrong",
    [{"saddle_probability": 1.5}, {"saddle_probability": -0.1}, {"peak_probability": 0.9}, {"peak_probability": 2.0}],
)
def test_records_of_peaks_that_do_not_add_up_are_none(maps, wrong):
    count_batch([maps / "a"], maps / "out", settings=Settings(CountingProtocol.named("peaks")))
    path = maps / "out" / "s0.json"
    content = json.loads(path.read_text())
    assert read_record(maps / "out", "s0") is not None
    content["lesions"][0] |= wrong
    path.write_text(json.dumps(content))
    assert read_record(maps / "out", "s0") is None


def test_a_failed_scan_has_a_record_without_a_count(maps):
    (maps / "a" / "s1.nii.gz").write_bytes(b"nothing")
    results = count_batch([maps / "a"], maps / "out")
    assert [scan.name for scan in results.failed] == ["s1"]
    record = read_record(maps / "out", "s1")
    assert not record.is_ok
    assert record.error == results.failed[0].error
    assert read_results(maps / "out").failed[0].error == results.failed[0].error


BREAKS = {
    "another format": lambda r: r | {"format": 2},
    "no candidates": lambda r: {key: value for key, value in r.items() if key != "lesions"},
    "a word for a number": lambda r: r | {"count": r["count"] | {"count_mode": "three"}},
    "a column that is gone": lambda r: r | {"count": {"n_candidates": 1}},
    "candidates of nobody": lambda r: r | {"lesions": [{"label": 1}]},
    "a member that is not there": lambda r: r | {"lesions": [row | {"member": 7} for row in r["lesions"]]},
    "a peak outside of the map": lambda r: r | {"lesions": [row | {"peak_j": 2**32 - 1} for row in r["lesions"]]},
    "a box outside of the map": lambda r: r | {"lesions": [row | {"bbox": "0 0 0 9 9 99"} for row in r["lesions"]]},
    "a box of two axes": lambda r: r | {"lesions": [row | {"bbox": "0 0 9 9"} for row in r["lesions"]]},
    "a number without end": lambda r: r | {"count": r["count"] | {"count_mean": 10**400}},
    "a list": lambda r: [r],
    "nothing": lambda _: None,
    "another scan": lambda r: r | {"scan": "s1"},
    "settings of nothing": lambda r: r | {"settings": {}},
}


@pytest.mark.parametrize("how", BREAKS)
def test_what_is_no_record_is_not_taken_for_one(maps, how):
    count_batch([maps / "a"], maps / "out")
    path = maps / "out" / "s0.json"
    path.write_text(json.dumps(BREAKS[how](json.loads(path.read_text()))))
    assert read_record(maps / "out", "s0") is None


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", "[]", '{"settings": {"protocol": {}}}', "9" * 5000])
def test_what_is_no_run_is_not_taken_for_one(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    assert find_run(tmp_path) is None


def test_settings_survive_their_json(tmp_path):
    fit = CalibrationFit(Calibration(0.7, -0.2, 0.1))
    for settings in (Settings(), Settings(channel=1, scale=1 / 255, save_labels=True), Settings(calibration=fit)):
        assert typed(json.loads(json.dumps(settings.recorded.plain)), Recorded) == settings.recorded
    assert read_json(_written(tmp_path, {"a": 1})) == {"a": 1}


def _written(folder, content):
    (folder / "x.json").write_text(json.dumps(content))
    return folder / "x.json"


def test_a_record_without_probabilities_of_the_count_is_none(maps):
    count_batch([maps / "a"], maps / "out")
    record = read_record(maps / "out", "s0")
    assert replace(record, pmf=()).to_json() != record.to_json()
    assert sum(record.pmf) == pytest.approx(1)


def test_a_record_that_is_nested_too_deeply_is_none(tmp_path):
    """With a right check sum, too: anybody can compute one."""
    nested = "[" * 100_000 + "]" * 100_000
    text = certified("a.json", f'{{\n"scan": "a",\n"settings": {nested}\n}}\n')
    assert is_certified_text("a.json", text)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(tmp_path / "a.json")
    assert read_record(tmp_path, "a", unchanged=True) is None
