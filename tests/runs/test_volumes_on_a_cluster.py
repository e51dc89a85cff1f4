import os
import signal
import threading
import time

import numpy as np
import pytest
from cluster_tasks import deadly_task, slow_task

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.errors import ProbabilityRangeError, WorkerDiedError
from lesioncount.files import volumes
from lesioncount.runs import volume_sweep

zarr = pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("default")  # of Dask and tornado, whose processes are killed here


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as local:
        yield local


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster.scheduler_address) as one:
        one.wait_for_workers(2, timeout=30)
        yield one


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(volume_sweep, "_PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(volume_sweep, "_TASK_BYTES", 1 << 15)


@pytest.fixture
def probabilities(rng):
    noise = rng.random((48, 40, 70)) ** 3
    smooth = sum(np.roll(noise, step, axis) for step in (-1, 0, 1) for axis in range(3)) / 9
    smooth[16:32, :20] = 0
    return np.clip((smooth - 0.35) * 4, 0, 1).astype(np.float32)


@pytest.fixture
def volume(tmp_path, probabilities):
    array = zarr.create_array(str(tmp_path / "v.zarr"), shape=probabilities.shape, chunks=(16, 16, 16), dtype="f4")
    array[...] = probabilities
    return array


def assert_same(result, expected):
    columns = expected.candidates.columns()
    assert str(result) == str(expected)
    for name, column in result.candidates.columns().items():
        np.testing.assert_array_equal(column, columns[name], err_msg=name)


@pytest.mark.parametrize("protocol", ["paper", "peaks"])
def test_a_cluster_counts_as_one_machine_does(client, tmp_path, probabilities, volume, protocol):
    options = {"protocol": protocol, "min_voxels": 2}
    result = lc.count_volume(volume, client=client, labels=tmp_path / "labels.zarr", **options)
    expected = lc.count_lesions(probabilities, **options)
    assert_same(result, expected)
    labels = zarr.open_array(str(tmp_path / "labels.zarr"))[...]
    np.testing.assert_array_equal(labels, expected.candidates.label_map())
    mask = probabilities < 0.6
    result = lc.count_volume(volume, client=client, mask=mask, **options)
    assert_same(result, lc.count_lesions(probabilities, mask=mask, **options))


def test_an_empty_volume_needs_no_worker(client, tmp_path):
    array = zarr.create_array(str(tmp_path / "e.zarr"), shape=(99, 99, 99), chunks=(32, 32, 32), dtype="u1")
    assert len(lc.count_volume(array, client=client).candidates) == 0


def test_errors_are_those_of_one_machine(client, volume):
    volume[30, 39, 69] = 3.5
    with pytest.raises(ProbabilityRangeError, match=r"3\.5"):
        lc.count_volume(volume, client=client)


@pytest.mark.slow  # Dask takes its time to replace workers on a busy machine
def test_a_worker_that_dies_is_replaced(client, volume, probabilities, monkeypatch):
    monkeypatch.setattr(volume_sweep, "_sum_task", slow_task)
    killer = threading.Thread(target=kill_one, args=(client,))
    killer.start()
    result = lc.count_volume(volume, client=client, protocol="peaks")
    killer.join()
    assert_same(result, lc.count_lesions(probabilities, protocol="peaks"))


def kill_one(client):
    pids = client.run(os.getpid)
    time.sleep(1)
    os.kill(next(iter(pids.values())), signal.SIGKILL)


@pytest.mark.slow  # Dask takes its time to replace workers on a busy machine
def test_workers_that_die_of_it_are_explained(client, volume, monkeypatch):
    monkeypatch.setattr(volume_sweep, "_sum_task", deadly_task)
    with pytest.raises(WorkerDiedError, match="The workers that counted it died"):
        lc.count_volume(volume, client=client)


def read(folder, name):
    return (folder / name).read_text()


@pytest.mark.usefixtures("client", "volume")  # workers are there, again
def test_the_command_spreads_one_volume(cluster, tmp_path, probabilities, capsys):
    np.save(tmp_path / "v.npy", probabilities)
    assert main(["count", str(tmp_path / "v.npy"), "-o", str(tmp_path / "one"), "--quiet"]) == 0
    command = ["count", str(tmp_path / "v.zarr"), "--quiet", "-o"]
    assert main([*command, str(tmp_path / "many"), "--cluster", cluster.scheduler_address]) == 0
    assert main([*command, str(tmp_path / "jobs"), "--jobs", "2"]) == 0
    assert capsys.readouterr().err == ""
    for out in ("many", "jobs"):
        for table in ("counts.tsv", "lesions.tsv"):
            assert read(tmp_path / out, table) == read(tmp_path / "one", table).replace("v.npy", "v.zarr")


@pytest.mark.usefixtures("client", "volume")
def test_large_volumes_of_a_run_are_spread_after_the_others(cluster, tmp_path, probabilities, monkeypatch):
    monkeypatch.setattr(volumes, "LARGE_VOLUME", 1000)
    (tmp_path / "maps").mkdir()
    (tmp_path / "v.zarr").rename(tmp_path / "maps" / "v.zarr")
    np.save(tmp_path / "maps" / "small.npy", probabilities[:5])
    command = ["count", str(tmp_path / "maps"), "-o", str(tmp_path / "out"), "--quiet", "--save-labels"]
    assert main([*command, "--cluster", cluster.scheduler_address]) == 0
    labels = zarr.open_array(str(tmp_path / "out" / "v_lesions.zarr"))
    expected = lc.find_candidates(probabilities).label_map()
    np.testing.assert_array_equal(labels[...], expected)
    assert (tmp_path / "out" / "small_lesions.nii.gz").exists()
    assert main([*command, "--resume"]) == 0
