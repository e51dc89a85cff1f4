"""Records, settings and runs of comparisons: typed, the same after a round trip, and nothing else is taken for one."""

import json
from dataclasses import replace

import pytest
from runs.small_cohort import dataset, folders

from lesioncount.errors import CalibrationError, MapFileError
from lesioncount.folder.plain import decoded, read_json, typed
from lesioncount.protocol import CountingProtocol
from lesioncount.results.record import Record, read_record
from lesioncount.results.recorded import Recorded
from lesioncount.results.run_file import find_run
from lesioncount.runs import ChangeSettings, compare_batch, read_changes
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit, KnownTruth

NEW = CalibrationFit(Calibration(0.7, -0.3, 0.1, counted="new", coupling=1.5))
GONE = CalibrationFit(Calibration(0.8, 0.2, counted="gone"))


@pytest.fixture
def out(tmp_path):
    compare_batch(folders(tmp_path), tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("candidates", ["regions", "peaks"])
@pytest.mark.parametrize("calibrations", [(), (NEW, GONE)])
def test_a_record_survives_its_json(tmp_path, candidates, calibrations):
    settings = ChangeSettings(CountingProtocol(candidates=candidates), calibrations=calibrations)
    results = compare_batch([dataset(tmp_path / "data", ("1", "2", "3"))], tmp_path / "out", settings=settings)
    for course in results.courses:
        record = results.record(course.name)
        written = json.loads((tmp_path / "out" / f"{course.name}.json").read_text())
        assert json.loads(record.to_json()) | {"checksum": written["checksum"]} == written
        assert decoded(record.to_json(), Record, is_ours=False).checked().to_json() == record.to_json()
        assert record.summary.to_json() == course.to_json()
        assert record.settings == settings.recorded


def test_tables_are_those_that_the_numbers_were_made_of(out):
    results = read_changes(out)
    for record in results.records():
        pair = record.pairs[0]
        for kind in ("new", "gone", "persisting"):
            again = record.settings.as_it_is(kind).distribution(record.table(pair, kind))
            assert again.mean() == pytest.approx(pair.counts[kind].numbers.raw.count_mean)
            assert list(again.pmf()) == pytest.approx(pair.counts[kind].pmf, abs=1e-12)


BREAKS = {
    "another format": lambda r: r | {"format": 2},
    "a count": lambda r: r | {"kind": "counts"},
    "of another patient": lambda r: r | {"patient": "p2"},
    "no sessions": lambda r: {key: value for key, value in r.items() if key != "sessions"},
    "one session": lambda r: r | {"sessions": r["sessions"][:1]},
    "no pairs": lambda r: r | {"pairs": []},
    "an error, and results": lambda r: r | {"error": "it failed"},
    "a pair of a session that is not there": lambda r: r | {"pairs": [r["pairs"][0] | {"after": 7}]},
    "a pair backwards": lambda r: r | {"pairs": [r["pairs"][0] | {"before": 1, "after": 0}]},
    "a pair without numbers": lambda r: r | {"pairs": [{"pair": "p1", "before": 0, "after": 1, "tolerance_mm": 2.0}]},
    "a distribution of nothing": lambda r: r | {"pairs": [r["pairs"][0] | {"new": r["pairs"][0]["new"] | {"pmf": []}}]},
    "a word for a number": lambda r: r | {"pairs": [r["pairs"][0] | {"tolerance_mm": "two"}]},
    "candidates of nobody": lambda r: r | {"sessions": [one | {"lesions": [{"label": 1}]} for one in r["sessions"]]},
    "a candidate outside": lambda r: _with_lesions(r, peak_i=99),
    "a saddle above its peak": lambda r: _with_lesions(r, peak_probability=0.5, saddle_probability=0.6),
    "a lineage below one": lambda r: _with_lesions(r, lineage=0),
    "a probability above one": lambda r: _with_lesions(r, p_new=1.5),
    "settings of nothing": lambda r: r | {"settings": {}},
    "no settings": lambda r: r | {"settings": None},
    "a calibration of dogs": lambda r: r | {"settings": r["settings"] | {"calibrations": {"dogs": {}}}},
    "a calibration with hundreds of digits": lambda r: (
        r | {"settings": r["settings"] | {"calibrations": {"new": {"slope": "9" * 400}}}}
    ),
    "a list": lambda r: [r],
    "nothing": lambda _: None,
}


def _with_lesions(record, **values):
    sessions = [one | {"lesions": [lesion | values for lesion in one["lesions"]]} for one in record["sessions"]]
    return record | {"sessions": sessions}


@pytest.mark.parametrize("how", BREAKS)
def test_what_is_no_record_is_not_taken_for_one(out, how):
    path = out / "p1.json"
    assert read_record(out, "p1") is not None
    path.write_text(json.dumps(BREAKS[how](json.loads(path.read_text()))))
    assert read_record(out, "p1") is None
    again = read_changes(out)
    assert [course.name for course in again.failed] == ["p1"]
    assert "p1.json is missing or not a valid record" in again.failed[0].error
    with pytest.raises(MapFileError, match=r"p1\.json is missing or not a valid record"):
        again.record("p1")


@pytest.mark.parametrize("text", ["", "[" * 100_000, "9" * 5000, '{"format": 1, "kind": "changes"}', "\x00"])
def test_what_is_no_json_is_no_record(out, text):
    (out / "p1.json").write_text(text)
    assert read_record(out, "p1") is None


def test_a_record_that_is_gone_is_a_failure(out):
    (out / "p1.json").unlink()
    assert [course.name for course in read_changes(out).failed] == ["p1"]


RUNS = {
    "a run of a count": lambda r: {key: value for key, value in r.items() if key != "kind"},
    "of another kind": lambda r: r | {"kind": "counts"},
    "no settings": lambda r: r | {"settings": {}},
    "a status that there is not": lambda r: r | {"run": {"jobs": 1, "status": "asleep"}},
    "jobs in words": lambda r: r | {"run": {"jobs": "many", "status": "finished"}},
    "patients without paths": lambda r: r | {"patients": [{"patient": "p1", "error": None}]},
    "patients without names": lambda r: r | {"patients": [{"patient": 7, "error": None, "paths": []}]},
    "a list": lambda r: [r],
}


@pytest.mark.parametrize("how", RUNS)
def test_what_is_no_run_is_not_taken_for_one(out, how):
    path = out / "run.json"
    assert find_run(out) is not None
    path.write_text(json.dumps(RUNS[how](json.loads(path.read_text()))))
    assert find_run(out) is None
    with pytest.raises(MapFileError, match=r"Compare first: lesioncount compare BASELINE FOLLOWUP -o"):
        read_changes(out)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", "[]", "9" * 5000])
def test_what_is_no_json_is_no_run(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    assert find_run(tmp_path) is None


@pytest.mark.parametrize(
    "settings",
    [
        ChangeSettings(),
        ChangeSettings(channel=1, scale=1 / 255, save_labels=True),
        ChangeSettings(CountingProtocol.named("peaks"), logits=True, tolerance_mm=3.5, coupling=0.5),
        ChangeSettings(calibrations=(NEW, GONE)),
    ],
)
def test_settings_survive_their_json(settings):
    assert typed(json.loads(json.dumps(settings.recorded.plain)), Recorded) == settings.recorded


class TestCalibrations:
    def check(self, *fits, **settings):
        ChangeSettings(calibrations=fits, **settings).check()

    def test_each_corrects_what_it_was_fitted_for(self):
        self.check(NEW, GONE)
        assert ChangeSettings(calibrations=(NEW, GONE)).fit("gone") is GONE
        assert ChangeSettings(calibrations=(NEW, GONE)).fit("persisting") is None

    def test_one_of_single_scans_is_refused(self):
        with pytest.raises(CalibrationError, match=r"for the lesions of single scans, not for changes.*calibrate OUT"):
            self.check(CalibrationFit(Calibration(0.5)))

    def test_two_for_one_thing_are_refused(self):
        with pytest.raises(CalibrationError, match="two calibrations for new lesions"):
            self.check(NEW, NEW)

    def test_another_protocol_is_refused(self):
        fit = CalibrationFit(replace(NEW.calibration, protocol=CountingProtocol(0.3)))
        with pytest.raises(CalibrationError, match="with the same protocol"):
            self.check(fit)
        self.check(fit, protocol=CountingProtocol(0.3))

    def test_guaranteed_intervals_need_evidence(self):
        with pytest.raises(CalibrationError, match="Guaranteed intervals need"):
            self.check(NEW, conformal=True)

    def test_calibrated_numbers_and_guaranteed_intervals_are_written(self, tmp_path):
        truth = KnownTruth.of([CandidateTable.of([0.9], other=[0.0])] * 40, [1] * 40, counted="new")
        fit = CalibrationFit.fit(truth)
        settings = ChangeSettings(calibrations=(fit, GONE), conformal=True)
        results = compare_batch(folders(tmp_path), tmp_path / "out", settings=settings)
        for record in results.records():
            counts = record.pairs[0].counts
            for kind, used in (("new", fit), ("gone", GONE)):
                expected = used.calibration.distribution(record.table(record.pairs[0], kind))
                assert counts[kind].numbers.calibrated.count_mean == pytest.approx(expected.mean())
                assert counts[kind].pmf_calibrated == pytest.approx(expected.pmf())
                assert counts[kind].numbers.best == counts[kind].numbers.calibrated
            new = record.table(record.pairs[0], "new")
            assert counts["new"].numbers.guaranteed == fit.conformal.interval(new, 0.9)
            assert counts["gone"].numbers.guaranteed is None
            assert counts["persisting"].numbers.calibrated is None
        header = (tmp_path / "out" / "changes.tsv").read_text().splitlines()[0].split("\t")
        assert {"new_mean_calibrated", "new_interval90_low_conformal", "gone_p_any_calibrated"} <= set(header)
        assert "gone_interval90_low_conformal" not in header
        assert "persisting_mean_calibrated" not in header
        again = read_changes(tmp_path / "out")
        calibrated, raw = (again.distributions("gone", calibrated=one)["p1"] for one in (True, False))
        assert calibrated.mean() != raw.mean()
        assert again.run.settings == settings.recorded


def test_a_whole_number_that_is_too_large_is_no_record(out):
    text = (out / "p1.json").read_text()
    larger = text.replace('"n_dropped":0', f'"n_dropped":{10**30}')
    assert larger != text
    (out / "p1.json").write_text(larger)
    assert read_record(out, "p1") is None
    with pytest.raises(ValueError, match="too large"):
        read_json(out / "p1.json")
