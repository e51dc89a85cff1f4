"""What a resumed run does with other settings, other outputs and files of others: of counts and comparisons alike."""

import hashlib
import json

import numpy as np
import pytest
from nifti_files import save
from two_kinds import COUNT, KINDS, SHAPE, die_of_p1, files, history, records

from lesioncount.cli import main
from lesioncount.errors import LesionCountError
from lesioncount.files import formats
from lesioncount.runs import compare_batch, count_batch
from lesioncount.runs.compare import Comparing
from lesioncount.runs.count import Counting
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit

NAMES = ("p0", "p1", "p2")

both = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def maps(tmp_path, kind):
    return kind.cohort(tmp_path / "maps", NAMES)


@both
class TestSettings:
    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--threshold", "0.3"], "threshold is 0.3 instead of 0.1"),
            (["--protocol", "peaks"], "instead of"),
            (["--connectivity", "26"], "connectivity is 26 instead of edges"),
            (["--min-size", "3mm3"], "min_volume_mm3 is 3.0 instead of 0.0"),
            (["--scale", "0.5"], "scale is 0.5 instead of none"),
            (["--channel", "0"], "channel is 0 instead of none"),
            (["--logits"], "logits is true instead of false"),
            (["--ask", "{any} >= 1"], "questions is"),
            (["--mask", "MASK"], "mask is given instead of none"),
            (["--calibration", "CALIBRATION"], "instead of none"),
        ],
    )
    def test_others_are_refused_by_their_names(self, kind, maps, out, tmp_path, capsys, options, says):
        save(tmp_path / "mask.nii.gz", np.ones(SHAPE, np.uint8))
        counted = "lesions" if kind is COUNT else "new"
        CalibrationFit(Calibration(0.5, counted=counted)).save(tmp_path / "cal.json")
        places = {"MASK": str(tmp_path / "mask.nii.gz"), "CALIBRATION": str(tmp_path / "cal.json")}
        options = [places.get(one, one.replace("{any}", "count" if kind is COUNT else "new")) for one in options]
        assert kind.run(maps, out) == 0
        before = files(out)
        assert kind.run(maps, out, "--resume", *options) == 2
        assert says in capsys.readouterr().err
        assert files(out) == before
        # Forgotten the other way round.
        assert kind.run(maps, tmp_path / "other", *options) in (0, 1)
        before = files(tmp_path / "other")
        assert kind.run(maps, tmp_path / "other", "--resume") == 2
        assert "was made with other settings" in capsys.readouterr().err
        assert files(tmp_path / "other") == before

    def test_the_same_settings_change_nothing(self, kind, maps, out):
        assert kind.run(maps, out, "--write=labels", "--threshold", "0.2") == 0
        before = files(out)
        assert kind.run(maps, out, "--write=labels", "--threshold", "0.2", "--resume") == 0
        assert files(out) == before

    def test_a_record_whose_run_json_is_lost_still_knows_its_settings(self, kind, maps, out, capsys):
        assert kind.run(maps, out) == 0
        for path in (out / "run.json", *out.glob("*.tsv")):
            path.unlink()
        before = records(out)
        assert kind.run(maps, out, "--resume", "--threshold", "0.3") == 2
        assert "threshold is 0.3 instead of 0.1" in capsys.readouterr().err
        assert kind.run(maps, out, "--resume") == 0
        assert records(out) == before


@both
class TestOutputs:
    def test_label_maps_and_page_of_an_old_map_go_with_it(self, kind, maps, out):
        pytest.importorskip("jinja2")
        assert kind.run(maps, out, "--write=labels", "--report") == 0
        kept = {name: data for name, data in files(out).items() if name.startswith(("p0", "p2"))}
        kind.patient(maps, "p1", seed=99, n=2)
        assert kind.run(maps, out, "--resume") == 0
        left = files(out)
        assert not [name for name in left if name.startswith("p1") and name != "p1.json"]
        assert kind.page not in left
        assert {name: left.get(name) for name in kept} == kept
        listed = json.loads((out / "run.json").read_text())["files"]
        assert set(listed) <= set(left)

    def test_those_that_are_not_asked_for_again_stay_with_an_unchanged_map(self, kind, maps, out):
        pytest.importorskip("jinja2")
        assert kind.run(maps, out, "--write=labels", "--report") == 0
        before = files(out)
        assert kind.run(maps, out, "--resume") == 0
        assert files(out) == before

    def test_those_that_were_not_asked_for_before_are_made(self, kind, maps, out):
        assert kind.run(maps, out) == 0
        assert kind.run(maps, out, "--resume", "--write=labels") == 0
        for name in NAMES:
            assert {path.name for path in out.glob(f"{name}_*.nii.gz")} == {f"{name}{one}" for one in kind.labels}

    def test_a_patient_that_fails_later_has_none(self, kind, maps, out):
        assert kind.run(maps, out, "--write=labels") == 0
        (maps / kind.times[-1] / "p1.nii.gz").write_bytes(b"broken")
        assert kind.run(maps, out, "--write=labels", "--resume") == 1
        assert not list(out.glob("p1*.nii.gz"))

    def test_a_page_does_not_outlive_a_patient_that_was_left_out(self, kind, maps, out):
        pytest.importorskip("jinja2")
        assert kind.run(maps, out, "--report") == 0
        assert kind.run(maps, out, "--resume", name="p0") == 0
        assert not (out / kind.page).exists()
        assert set(records(out)) == set(NAMES)


@both
class TestFilesOfOthers:
    @pytest.mark.parametrize("name", ["run.json", "runs.jsonl", "p1.json", "TABLE"])
    @pytest.mark.parametrize("option", [(), ("--resume",), ("--overwrite",)])
    def test_are_never_replaced(self, kind, maps, out, name, option):
        name = kind.table if name == "TABLE" else name
        out.mkdir()
        (out / name).write_text("mine\n")
        assert kind.run(maps, out, *option) == 2
        assert {path.name: path.read_text() for path in out.iterdir()} == {name: "mine\n"}

    def test_a_label_map_of_an_expert_is_kept(self, kind, maps, out):
        assert kind.run(maps, out) == 0
        mine = save(out / f"p1{kind.labels[0]}", np.ones(SHAPE, np.uint8)).read_bytes()
        kind.patient(maps, "p1", seed=98)
        assert kind.run(maps, out, "--resume") == 0
        assert (out / f"p1{kind.labels[0]}").read_bytes() == mine


class OddError(Exception):
    """No error of ours."""


@both
def test_an_unexpected_exception_of_a_reader_is_a_failed_row(kind, maps, out, monkeypatch):
    open_map = formats.open_map

    def opened(path, **options):
        if "p1" in str(path):
            raise OddError("the header is odd")
        return open_map(path, **options)

    for name in ("file_counts", "session_maps"):
        monkeypatch.setattr(f"lesioncount.runs.{name}.open_map", opened)
    assert kind.run(maps, out) == 1
    rows = (out / kind.table).read_text().splitlines()[1:]
    assert [row.split("\t")[0] for row in rows if "unexpected OddError: the header is odd" in row] == ["p1"]
    monkeypatch.undo()
    assert kind.run(maps, out, "--resume") == 0


@both
def test_a_worker_that_died_does_not_keep_its_patient_from_being_resumed(kind, maps, out, monkeypatch):
    monkeypatch.chdir(maps.parent)
    relative = maps.relative_to(maps.parent)
    batch = count_batch if kind is COUNT else compare_batch
    results = batch([*map(str, kind.inputs(relative))], out, jobs=2, show=die_of_p1)
    assert [one.name for one in results.failed] == ["p1"]
    assert kind.run(relative, out, "--resume") == 0
    assert len((out / kind.table).read_text().splitlines()) == 1 + len(NAMES)


@both
class TestManyWaysToRun:
    @pytest.mark.filterwarnings("default")  # of Dask, whose ports and sockets are its own affair
    def test_processes_and_clusters_write_the_same_bytes(self, kind, maps, tmp_path):
        distributed = pytest.importorskip("distributed")
        assert kind.run(maps, tmp_path / "one", "--write=labels") == 0
        assert kind.run(maps, tmp_path / "two", "--write=labels", "-j", 2) == 0
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", host="127.0.0.1",
            protocol="tcp://",
        ) as cluster:  # fmt: skip
            assert kind.run(maps, tmp_path / "many", "--write=labels", "--cluster", cluster.scheduler_address) == 0
        assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "many")

    def test_a_cluster_that_cannot_be_reached_leaves_nothing(self, kind, maps, out, capsys, monkeypatch):
        pytest.importorskip("distributed")
        monkeypatch.setattr("lesioncount.runs.workers._SECONDS_TO_CONNECT", 1)
        assert kind.run(maps, out, "--cluster", "tcp://127.0.0.1:9") == 2
        assert "no Dask scheduler" in capsys.readouterr().err
        assert not out.exists()

    def test_what_is_unchanged_is_looked_at_where_the_work_is_done(self, kind, maps, out, monkeypatch):
        """Workers hash maps, not the process that waits for them."""
        assert kind.run(maps, out) == 0
        monkeypatch.setattr("lesioncount.cohort.item.fingerprint", _not_here)
        assert kind.run(maps, out, "--resume", "-j", 2) == 0


def _not_here(path):
    raise LesionCountError(f"{path} is hashed in the parent")


@both
def test_tables_are_written_as_parquet_too(kind, maps, out):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert kind.run(maps, out, "--write=parquet") == 0
    for table in out.glob("*.tsv"):
        typed = parquet.read_table(table.with_suffix(".parquet"))
        assert typed.column_names == table.read_text().split("\n", 1)[0].split("\t")
        mean = "count_mean" if kind is COUNT else "new_mean"
        if mean in typed.column_names:
            assert str(typed.schema.field(mean).type) == "double"
            assert str(typed.schema.field(mean.replace("mean", "mode")).type) == "int64"
    before = files(out)
    assert kind.run(maps, out, "--write=parquet", "--resume") == 0
    assert files(out) == before
    assert kind.run(maps, out, "--overwrite") == 0
    assert not list(out.glob("*.parquet"))


@both
class TestHistory:
    def test_each_run_adds_a_line_with_what_has_changed(self, kind, maps, out):
        assert kind.run(maps, out) == 0
        assert kind.run(maps, out, "--resume") == 0
        kind.patient(maps, "p1", seed=97)
        kind.patient(maps, "p3", seed=96)
        assert kind.run(maps, out, "--resume") == 0
        assert kind.run(maps, out, "--overwrite", "--threshold", "0.2", name="p0") == 0
        first, same, changed, other = history(out)
        assert first["command"].startswith(f"lesioncount {kind.name} ")
        assert set(first["changed"]["inputs"]) == set(NAMES)
        assert first["tables"][kind.table] == hashlib.sha256(b"").hexdigest() or len(first["tables"][kind.table]) == 64
        assert same["changed"] == {"settings": [], "inputs": {}, "gone": [], "tables": []}
        assert same["inputs"] == first["inputs"]
        assert set(changed["changed"]["inputs"]) == {"p1", "p3"}
        assert kind.table in changed["changed"]["tables"]
        assert other["changed"]["settings"] == ["protocol"]
        assert other["changed"]["gone"] == ["p1", "p2", "p3"]
        assert other["settings"]["protocol"]["threshold"] == 0.2
        assert {line["status"] for line in (first, same, changed, other)} == {"finished"}
        maps_of_p1 = [hashlib.sha256((maps / time / "p1.nii.gz").read_bytes()).hexdigest() for time in kind.times]
        assert [one["sha256"] for one in changed["changed"]["inputs"]["p1"]] == maps_of_p1

    def test_lines_name_the_one_before_and_none_is_changed(self, kind, maps, out):
        for option in ([], ["--resume"], ["--overwrite"]):
            before = (out / "runs.jsonl").read_bytes() if option else b""
            assert kind.run(maps, out, *option) == 0
            assert (out / "runs.jsonl").read_bytes().startswith(before)
        lines = (out / "runs.jsonl").read_bytes().splitlines()
        digests = [None, *(hashlib.sha256(line).hexdigest() for line in lines[:-1])]
        assert [json.loads(line)["previous"] for line in lines] == digests

    def test_a_line_that_a_full_disk_has_cut_stays_and_the_next_begins_anew(self, kind, maps, out):
        assert kind.run(maps, out) == 0
        whole = (out / "runs.jsonl").read_bytes()
        (out / "runs.jsonl").write_bytes(whole + whole[:50])
        assert kind.run(maps, out, "--resume") == 0
        lines = (out / "runs.jsonl").read_bytes().splitlines()
        assert len(lines) == 3
        assert json.loads(lines[2])["previous"] == hashlib.sha256(lines[0]).hexdigest()
        assert json.loads(lines[2])["changed"]["inputs"] == {}

    def test_from_python_there_is_no_command(self, kind, maps, out):
        batch = count_batch if kind is COUNT else compare_batch
        batch(kind.inputs(maps), out)
        assert [line["command"] for line in history(out)] == [None]

    def test_no_secret_is_told(self, kind, maps, out):
        """An address may carry a signature: it is counted, or fails, and nobody reads it in the history."""
        later = [] if kind is COUNT else ["http://127.0.0.1:9/p0.nii.gz?signature=hush"]
        given = [kind.inputs(maps, "p0")[0], *(later or ["http://127.0.0.1:9/p9.nii.gz?signature=hush"])]
        assert main([kind.name, *given, "-o", str(out), "--quiet"]) in (1, 2)
        told = [path.read_text() for path in out.rglob("*") if path.is_file()]
        assert not any("hush" in text for text in told)


@both
def test_a_table_has_all_records_that_are_there_after_an_interruption(kind, tmp_path, monkeypatch):
    """Patients are worked on in lots of three here, and the interruption comes with the second of a lot."""
    names = [f"p{i:02}" for i in range(24)]
    cohort, out = kind.cohort(tmp_path / "maps", names), tmp_path / "out"
    worked_on = Counting if kind is COUNT else Comparing
    usual = worked_on.work

    def stopped(self, item, *arguments, **options):
        if item.name == "p04":
            raise KeyboardInterrupt
        return usual(self, item, *arguments, **options)

    monkeypatch.setattr(worked_on, "work", stopped)
    assert kind.run(cohort, out) == 130
    listed = [line.split("\t")[0] for line in (out / kind.table).read_text().splitlines()[1:]]
    assert listed == sorted(records(out)) == names[:4]
    monkeypatch.undo()
    assert kind.run(cohort, out, "--resume") == 0
    assert sorted(records(out)) == names
