"""Runs that are killed, workers that die, disks that fill up: nothing is lost, nothing half-written."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import nibabel
import numpy as np
import pytest

from lesioncount.cli import main
from lesioncount.runs.count import count_batch

N_SCANS = 24


@pytest.fixture
def cohort(tmp_path, rng):
    folder = tmp_path / "cohort"
    folder.mkdir()
    for i in range(N_SCANS):
        data = (rng.random((40, 40, 40)) ** 4 * 0.7).astype(np.float32)
        nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), folder / f"scan{i:02}.nii.gz")
    return folder


def results(out):
    return {path.name: path.read_bytes() for path in Path(out).iterdir() if not path.name.startswith("run")}


def assert_same_results(out, calm):
    ours, theirs = results(out), results(calm)
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []


def start(arguments):
    command = [sys.executable, "-m", "lesioncount", "count", *map(str, arguments), "--quiet"]
    return subprocess.Popen(command, start_new_session=True, preexec_fn=_heed_ctrl_c)  # noqa: PLW1509 - takes no lock


def _heed_ctrl_c():
    """Tests that run in the background have children that ignore Ctrl-C, unless they are told not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_records(out, n):
    deadline = time.monotonic() + 60
    while len(list(out.glob("scan*.json"))) < n:
        assert time.monotonic() < deadline, "the run did not get going"
        time.sleep(0.01)


@pytest.mark.parametrize("jobs", [1, 2])
def test_kill_and_resume_gives_the_undisturbed_result(cohort, tmp_path, jobs):
    out = tmp_path / "killed"
    run = start([cohort, "-o", out, "--jobs", jobs])
    wait_for_records(out, 3)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    done = len(list(out.glob("scan*.json")))
    assert done < N_SCANS
    assert main(["count", str(cohort), "-o", str(out), "--resume", "--quiet"]) == 0
    assert main(["count", str(cohort), "-o", str(tmp_path / "calm"), "--quiet"]) == 0
    assert_same_results(out, tmp_path / "calm")


def test_ctrl_c_leaves_what_was_finished(cohort, tmp_path):
    out = tmp_path / "out"
    run = start([cohort, "-o", out])
    wait_for_records(out, 3)
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    lines = (out / "counts.tsv").read_text().splitlines()
    assert 3 <= len(lines) - 1 < N_SCANS
    assert main(["count", str(cohort), "-o", str(out), "--resume", "--quiet"]) == 0
    assert len((out / "counts.tsv").read_text().splitlines()) == N_SCANS + 1


def test_a_worker_that_dies_is_replaced(cohort, tmp_path):
    out = tmp_path / "out"
    run = start([cohort, "-o", out, "--jobs", "2"])
    wait_for_records(out, 2)
    children = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True, check=False).stdout.split()
    workers = [pid for pid in map(int, children) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(workers[-1], signal.SIGKILL)
    assert run.wait(120) == 0
    assert len((out / "counts.tsv").read_text().splitlines()) == N_SCANS + 1


def test_a_full_disk_is_a_clear_error_and_leaves_no_half_file(cohort, tmp_path, capsys):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
        code = main(["count", str(cohort), "-o", str(tmp_path / "out"), "--quiet"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    assert code in (1, 2)
    assert "cannot be written: File too large" in capsys.readouterr().err
    assert all(path.stat().st_size < 2000 for path in (tmp_path / "out").iterdir())
    assert not list((tmp_path / "out").glob("scan*.json"))
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.filterwarnings("default")  # of Dask and tornado, whose processes are killed here
def test_a_dask_worker_that_dies_does_not_stop_the_run(cohort, tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    )
    try:
        killed = []

        def kill_one(_summary, done, _total):
            if done == 2:
                with distributed.Client(cluster.scheduler_address) as client:
                    killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        result = count_batch([cohort], tmp_path / "out", cluster=cluster.scheduler_address, progress=kill_one)
    finally:
        cluster.close(timeout=20)
    assert killed
    assert not result.failed
    assert len(result.scans) == N_SCANS
    assert main(["count", str(cohort), "-o", str(tmp_path / "calm"), "--quiet"]) == 0
    assert_same_results(tmp_path / "out", tmp_path / "calm")


def test_an_unreachable_cluster_is_explained(cohort, tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("lesioncount.runs.workers._SECONDS_TO_CONNECT", 1)
    code = main(["count", str(cohort), "-o", str(tmp_path / "out"), "--cluster", "tcp://127.0.0.1:9", "--quiet"])
    assert code == 2
    assert "no Dask scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err


def test_ctrl_c_stops_several_jobs_at_once(cohort, tmp_path):
    for i in range(N_SCANS, 400):
        os.link(cohort / f"scan{i % N_SCANS:02}.nii.gz", cohort / f"scan{i}.nii.gz")
    out = tmp_path / "out"
    run = start([cohort, "-o", out, "--jobs", "2"])
    wait_for_records(out, 3)
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    assert len(list(out.glob("scan*.json"))) < 300


CRASH = """
import os
import lesioncount.runs.count as counting
count_file = counting.count_file
def crash(path, **options):
    if "scan05" in str(path):
        os._exit(3)
    return count_file(path, **options)
counting.count_file = crash
"""


def test_a_scan_that_kills_its_process_fails_alone(cohort, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(CRASH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert main(["count", str(cohort), "-o", str(tmp_path / "out"), "--jobs", "2", "--quiet"]) == 1
    lines = (tmp_path / "out" / "counts.tsv").read_text().splitlines()[1:]
    assert len(lines) == N_SCANS
    assert [line.split("\t")[0] for line in lines if "\tfailed\t" in line] == ["scan05"]
