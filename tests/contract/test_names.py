"""A name stays with its patient, whatever was killed, forgotten or left out: of counts and comparisons alike."""

import json
import signal
import time
from pathlib import Path

import pytest
from two_kinds import COMPARE, COUNT, KINDS, Kind, files, history, owners, records, signal_group

from lesioncount.cli import main
from lesioncount.folder.output import OutputFolder

NAMES = tuple(f"p{number}" for number in range(4))

both = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def a(tmp_path, kind):
    return kind.cohort(tmp_path / "a", NAMES, seed=1)


@pytest.fixture
def b(tmp_path, kind):
    """Other patients, whose files have the same names."""
    return kind.cohort(tmp_path / "b", NAMES, seed=2)


def as_a_killed_run_of_0_2(out: Path) -> None:
    """Leave ``run.json`` as version 0.2 left it from the first to the last moment of a run: without inputs."""
    content = json.loads((out / "run.json").read_text())
    content["run"] = {"jobs": 1, "status": "running"}
    for key in ("inputs", "patients"):
        if key in content:
            content[key] = []
    content.pop("checksum")
    text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()) + "\n}\n"
    OutputFolder(out).write_text("run.json", text)


@both
class TestOtherPatients:
    """Another folder with maps of the same names is given to an earlier run."""

    def refused(self, kind: Kind, other, out, capsys, name=None):
        before = files(out)
        assert kind.run(other, out, "--resume", name=name) == 2
        message = capsys.readouterr().err
        assert "under the name p" in message
        assert "would take over" in message
        assert files(out) == before

    def test_after_a_finished_run(self, kind, a, b, out, capsys):
        assert kind.run(a, out) == 0
        self.refused(kind, b, out, capsys)

    def test_after_a_run_whose_list_of_inputs_is_empty(self, kind, a, b, out, capsys):
        assert kind.run(a, out) == 0
        as_a_killed_run_of_0_2(out)
        self.refused(kind, b, out, capsys)
        assert kind.run(a, out, "--resume") == 0
        assert set(records(out)) == set(NAMES)

    def test_after_a_run_with_fewer_inputs(self, kind, a, b, out, capsys):
        assert kind.run(a, out, "--write=labels") == 0
        assert kind.run(a, out, "--resume", "--write=labels", name="p1") == 0
        self.refused(kind, b, out, capsys, name="p2")
        assert {one for owner in owners(out).values() for one in owner} == {"a"}

    def test_after_a_run_in_which_it_had_failed(self, kind, a, b, out, capsys):
        (a / kind.times[-1] / "p0.nii.gz").write_bytes(b"broken")
        assert kind.run(a, out) == 1
        as_a_killed_run_of_0_2(out)
        self.refused(kind, b, out, capsys, name="p0")

    def test_without_run_json_and_without_resume(self, kind, a, b, out, capsys):
        assert kind.run(a, out) == 0
        (out / "run.json").unlink()
        before = files(out)
        assert kind.run(b, out) == 2
        assert kind.run(a, out) == 2
        assert "under the name p0" in capsys.readouterr().err
        assert files(out) == before

    def test_a_record_that_another_version_wrote_is_not_replaced(self, kind, a, b, out, capsys):
        assert kind.run(a, out) == 0
        as_a_killed_run_of_0_2(out)
        OutputFolder(out).write_text("p0.json", '{\n"format": 9,\n"who": "unknown"\n}\n')
        assert kind.run(b, out, "--resume", name="p0") == 2
        assert "does not say of which maps" in capsys.readouterr().err

    def test_all_is_replaced_where_that_is_asked_for(self, kind, a, b, out):
        assert kind.run(a, out) == 0
        assert kind.run(b, out, "--overwrite") == 0
        assert {one for owner in owners(out).values() for one in owner} == {"b"}

    def test_replacing_goes_on_after_a_kill(self, kind, a, b, out):
        assert kind.run(a, out) == 0
        assert kind.run(b, out, "--overwrite", name="p0") == 0
        assert kind.run(b, out, "--resume") == 0
        assert owners(out) == {name: {"b"} for name in NAMES}


@both
def test_maps_that_were_moved_keep_their_results(kind, a, out):
    assert kind.run(a, out) == 0
    before = records(out)
    moved = a.rename(a.with_name("moved"))
    assert kind.run(moved, out, "--resume") == 0
    assert records(out) == before


@pytest.mark.parametrize("kind", [COMPARE], ids=str)
def test_two_empty_baselines_are_not_one_patient(kind, a, b, out, capsys):
    for folder in (a, b):
        kind.patient(folder, "p0", seed=5, n=0)
        COUNT.patient(folder / "after", "p0", seed=6 if folder == a else 7)
    assert kind.run(a, out) == 0
    assert kind.run(b, out, "--resume", name="p0") == 2
    assert "would take over" in capsys.readouterr().err


@both
class TestKilled:
    """Killed before the first record, in the middle, or at the end of a resumed run."""

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_other_patients_do_not_get_the_names(self, kind, tmp_path, out, capsys, number):
        names = [f"p{one:02}" for one in range(60)]
        a, b = (kind.cohort(tmp_path / one, names, seed) for seed, one in enumerate("ab"))
        run = kind.start(a, out, "-j", 2, "--write=labels")
        wait_for(lambda: len(list(out.glob("p*.json"))) > 2)
        signal_group(run, number)
        assert run.wait(60) == (-number if number == signal.SIGKILL else 130)
        done = records(out)
        assert 2 < len(done) < len(names)
        assert kind.run(b, out, "--resume", "--write=labels") == 2
        assert "would take over" in capsys.readouterr().err
        assert records(out) == done
        assert kind.run(a, out, "--resume", "--write=labels") == 0
        assert set(records(out)) == set(names)
        assert {name: records(out)[name] for name in done} == done
        statuses = [line["status"] for line in history(out)]
        assert statuses == ["killed" if number == signal.SIGKILL else "interrupted", "finished"]

    def test_a_folder_is_readable_in_between(self, kind, a, out, capsys):
        assert kind.run(a, out) == 0
        as_if_killed_at_its_start(kind, out)
        listed = json.loads((out / "run.json").read_text())
        assert listed["run"]["status"] == "running"
        assert [one["status"] for one in listed["inputs" if kind is COUNT else "patients"]] == ["waiting"] * 4
        truth = out.with_name("truth.csv")
        truth.write_text("scan,count\n" + "".join(f"{name},{place}\n" for place, name in enumerate(NAMES)))
        evaluate = ["evaluate", str(out), "--truth-counts", str(truth), "-o", str(out.with_name("eval")), "--quiet"]
        assert main(evaluate) == 0, capsys.readouterr().err


def as_if_killed_at_its_start(kind, out):
    """Leave the folder as a resumed run does that is killed when it has written ``run.json`` for the first time."""
    content = json.loads((out / "run.json").read_text())
    content["run"]["status"] = "running"
    for one in content["inputs" if kind is COUNT else "patients"]:
        one["status"] = "waiting"
    content.pop("checksum")
    text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()) + "\n}\n"
    OutputFolder(out).write_text("run.json", text)


def wait_for(is_so, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "the run did not get going"
        time.sleep(0.01)
