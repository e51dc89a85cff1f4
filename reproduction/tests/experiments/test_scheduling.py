"""Jobs that need each other, side by side: none twice, none too early, and none that outlives its run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from experiments.fake_jobs import Dying, Failing, Written

from lesioncount.errors import ExperimentError, MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount_reproduction.experiments.scheduling import run_jobs

TESTS = Path(__file__).resolve().parents[1]


def test_processes_that_wait_for_jobs_need_no_torch():
    program = (
        "import sys, lesioncount_reproduction.experiments.scheduling\n"
        "print([name for name in ('torch', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def begun(cache):
    return (cache / "begun").read_text().split()


def test_needs_come_first_and_nothing_is_done_twice(tmp_path):
    trained = Written("trained")
    tested, attacked = Written("tested", (trained,)), Written("attacked", (trained,))
    said = []
    run_jobs([attacked, Written("alone"), tested], tmp_path / "new" / "cache", report=said.append)
    cache = tmp_path / "new" / "cache"
    assert begun(cache) == ["trained", "alone", "attacked", "tested"]
    assert attacked.path(cache).read_text().endswith("without []")
    assert [line.split(":")[0] for line in said] == [
        "[1/4] write trained", "[2/4] write alone", "[3/4] write attacked", "[4/4] write tested",
    ]  # fmt: skip
    said.clear()
    run_jobs([attacked, tested], cache, report=said.append)  # no process is started, and nothing is said
    assert said == []
    assert len(begun(cache)) == 4


def test_a_failure_stops_only_what_needs_it(tmp_path):
    broken, fine = Failing("broken"), Written("fine")
    never, last = Written("never", (fine, broken)), Written("last", (fine,))
    said = []
    message = (
        "1 of 5 parts failed, and 2 that need them were not begun; the others are kept. "
        f"First: write broken: ValueError: no broken in {tmp_path.name}"
    )
    with pytest.raises(ExperimentError, match=message):
        run_jobs([never, last, Written("after", (never,))], tmp_path, n_processes=2, report=said.append)
    assert sorted(begun(tmp_path)) == ["fine", "last"]
    assert sum("failed (ValueError: no broken" in line for line in said) == 1
    assert len(said) == 3


def test_what_only_finished_jobs_needed_is_not_done(tmp_path):
    """The file of a job is enough, though what it was made from is gone."""
    gone = Written("gone")
    kept = Written("kept", (gone,))
    kept.path(tmp_path).write_text("of another machine")
    run_jobs([kept], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
    run_jobs([kept, Written("new", (gone,))], tmp_path)
    assert begun(tmp_path) == ["gone", "new"]
    assert kept.path(tmp_path).read_text() == "of another machine"


def test_a_job_that_kills_its_process_fails_and_the_others_go_on(tmp_path):
    jobs = [Written("first"), Dying("second", (Written("first"),)), Written("third"), Written("fourth")]
    with pytest.raises(ExperimentError, match=r"1 of 4 parts failed.*second.*The process that worked on it died"):
        run_jobs(jobs, tmp_path)
    assert sorted(begun(tmp_path)) == ["first", "fourth", "third"]


PROGRAM = """
import sys
from pathlib import Path
from experiments.fake_jobs import Sleeping
from lesioncount_reproduction.experiments.scheduling import run_jobs

if __name__ == "__main__":
    run_jobs([Sleeping("asleep")], Path(sys.argv[1]))
"""


def is_running(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def wait_until(is_so, seconds):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_worker_outlives_a_run_that_is_killed(tmp_path):
    """Or the run that is started after it would write to the same trainings."""
    (tmp_path / "program.py").write_text(PROGRAM)
    found_in = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    run = subprocess.Popen(
        [sys.executable, tmp_path / "program.py", tmp_path / "cache"], env=os.environ | {"PYTHONPATH": found_in}
    )
    worker = None
    try:
        wait_until((tmp_path / "cache" / "sleeper").exists, 120)
        worker = int((tmp_path / "cache" / "sleeper").read_text())
        assert is_running(worker)
        assert worker != run.pid
        run.send_signal(signal.SIGKILL)
        run.wait(10)
        wait_until(lambda: not is_running(worker), 10)
    finally:
        run.kill()
        run.wait(10)
        if worker is not None and is_running(worker):
            os.kill(worker, signal.SIGKILL)
    assert not (tmp_path / "cache" / "asleep.txt").exists()


def test_a_cache_that_another_run_uses_is_left_alone(tmp_path):
    pytest.importorskip("fcntl", reason="runs are not told apart on this system")
    with OutputFolder(tmp_path).alone(), pytest.raises(MapFileError, match=f"in use by process {os.getpid()}"):
        run_jobs([Written("alone")], tmp_path)
    assert not (tmp_path / "begun").exists()
