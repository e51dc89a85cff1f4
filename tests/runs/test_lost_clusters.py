"""A cluster that loses all its workers: the run says what it waits for, ends, and can be resumed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cluster_tasks import deadly_task

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.errors import WorkerDiedError
from lesioncount.runs import compare_batch, count_batch, volume_sweep, workers

zarr = pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
    pytest.mark.filterwarnings("default"),  # of Dask and tornado, whose processes are killed here
]

N_MAPS = 60


@pytest.fixture(autouse=True)
def impatience(monkeypatch):
    monkeypatch.setattr(workers, "_SECONDS_TO_LOOK", 0.1)
    monkeypatch.setattr(workers, "_SECONDS_TO_SAY", 0.2)


@pytest.fixture
def scheduler():
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as local:
        yield local.scheduler_address


@pytest.fixture
def worker(scheduler, monkeypatch):
    """The only worker, which nobody replaces."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny", "--nthreads", "1"]
    process = subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.DEVNULL)
    with distributed.Client(scheduler) as client:
        client.wait_for_workers(1, timeout=120)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def maps(tmp_path, rng):
    (tmp_path / "maps").mkdir()
    for i in range(N_MAPS):
        np.save(tmp_path / "maps" / f"s{i:02}.npy", rng.random((5, 6, 7)) ** 6)
    return tmp_path / "maps"


def killing(process):
    def progress(_entry, n_done, _n):
        if n_done == 2:
            process.send_signal(signal.SIGKILL)
            process.wait()

    return progress


def assert_lost(results, caplog):
    assert 0 < len(results.failed) < N_MAPS
    assert all(one.error.startswith("the cluster was lost before it was") for one in results.failed)
    assert "The cluster has had no workers for" in caplog.text
    assert not results.interrupted


def test_scans_in_lots_fail_and_are_counted_when_it_is_resumed(scheduler, worker, maps, tmp_path, caplog, capsys):
    out = tmp_path / "out"
    assert_lost(count_batch([maps], out, cluster=scheduler, cluster_timeout=1, progress=killing(worker)), caplog)
    assert "--resume continues the run" in (out / "counts.tsv").read_text()
    command = ["count", str(maps), "--quiet", "-o"]
    assert main([*command, str(out), "--resume"]) == 0
    assert main([*command, str(tmp_path / "calm")]) == 0
    assert (out / "counts.tsv").read_bytes() == (tmp_path / "calm" / "counts.tsv").read_bytes()
    with pytest.raises(SystemExit, match="2"):
        main([*command, str(out), "--overwrite", "--cluster", scheduler, "--cluster-timeout", "0"])
    assert "at least 1" in capsys.readouterr().err


def test_comparisons_fail_alike(scheduler, worker, maps, tmp_path, caplog):
    out = tmp_path / "out"
    results = compare_batch([maps, maps], out, cluster=scheduler, cluster_timeout=1, progress=killing(worker))
    assert_lost(results, caplog)
    assert not compare_batch([maps, maps], out, resume=True).failed


def test_a_volume_fails(scheduler, worker, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(volume_sweep, "_sum_task", deadly_task)
    array = zarr.create_array(str(tmp_path / "v.zarr"), shape=(20, 20, 20), chunks=(10, 10, 10), dtype="f4")
    array[...] = 0.7
    with distributed.Client(scheduler) as client, pytest.raises(WorkerDiedError, match="cluster was lost"):
        lc.count_volume(array, client=client, cluster_timeout=1)
    assert worker.wait(10) == -signal.SIGKILL
    assert "The cluster has had no workers for" in caplog.text


@pytest.mark.usefixtures("worker")
def test_an_interrupted_run_ends_and_cancels_the_rest(scheduler, maps, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    results = count_batch([maps], tmp_path / "out", cluster=scheduler, progress=interrupt)
    assert results.interrupted
    assert not results.failed
