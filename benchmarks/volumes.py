"""One volume over a cluster: how much faster than one process, in how much memory, and whether it is right.

``python benchmarks/volumes.py dense``: 1024³ bytes, one process against two workers. Run it alone: it is a ratio of
times.

``python benchmarks/volumes.py sparse``: 2048 × 16384 × 16384 bytes, one chunk in a hundred stored, 10 000 lesions
across seams of all kinds, and one of two workers killed on the way; compared with the lesions that were drawn.

``python benchmarks/volumes.py growth``: how the time of one process grows with voxels, and with candidates among as
many voxels, as slopes of logarithms.

``--side 256`` and ``--shape 1024 2048 2048`` are for a try.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import zarr
from numpy.typing import NDArray

import lesioncount as lc

CHUNK = 128
SITE = 2 * CHUNK  # of the sparse volume: eight chunks around a corner
SPARSE = (2048, 16384, 16384)
LESIONS_PER_CHUNK = 10_000 / 262_144  # of those that are stored and those that are not
OPTIONS: dict[str, Any] = {"scale": 1 / 255, "connectivity": 26}


@contextmanager
def two_workers() -> Iterator[distributed.Client]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        client.run(_load)
        yield client


@contextmanager
def one_core() -> Iterator[None]:
    """Keep all threads of this process on one core: zarr decodes chunks in threads of its own, which use others."""
    threads = [int(thread.name) for thread in Path("/proc/self/task").iterdir()]
    before = {thread: os.sched_getaffinity(thread) for thread in threads}
    for thread in threads:
        os.sched_setaffinity(thread, {min(before[thread])})
    try:
        yield
    finally:
        for thread, cores in before.items():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cores)


def _load() -> None:
    """Whatever is loaded on first use is no cost of the volume."""
    lc.count_volume(zarr.create_array({}, shape=(8, 8, 8), chunks=(8, 8, 8), dtype="u1"))


def megabytes() -> float:
    """The highest resident memory of this process, what it has loaded included."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1000


def is_same(one: lc.LesionCount, other: lc.LesionCount) -> bool:
    columns = other.candidates.columns()
    mine = one.candidates.columns().items()
    return all(np.array_equal(column, columns[name], equal_nan=True) for name, column in mine)


def seconds_of(work: Callable[[], lc.LesionCount]) -> tuple[float, lc.LesionCount]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def smooth_noise(rng: np.random.Generator, side: int) -> NDArray[np.uint8]:
    """Bytes in which a few per cent of the voxels are above the threshold, in blobs with noise around them."""
    coarse = rng.random((side // 8 + 1,) * 3, dtype=np.float32)
    for axis in range(3):
        coarse = (coarse + np.roll(coarse, 1, axis)) / 2
    fine = coarse.repeat(8, 0).repeat(8, 1).repeat(8, 2)[:side, :side, :side]
    blobs = (np.clip((fine - 0.68) * 8, 0, 1) * 255).astype(np.uint8)
    return np.where((blobs == 0) & (fine > 0.6), rng.integers(0, 20, blobs.shape, np.uint8), blobs)


def dense(folder: Path, side: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    volume = zarr.create_array(str(folder / "dense.zarr"), shape=(side,) * 3, chunks=(CHUNK,) * 3, dtype="u1")
    for begin in np.ndindex(*(side // SITE,) * 3):
        box = tuple(slice(i * SITE, (i + 1) * SITE) for i in begin)
        volume[box] = smooth_noise(rng, SITE)
    found: dict[str, Any] = {"MB on disk": sum(path.stat().st_size for path in folder.rglob("*")) // 10**6}
    with two_workers() as client:
        for protocol, n_turns in (("paper", 3), ("peaks", 1)):
            how = {**OPTIONS, "protocol": protocol}
            lc.count_volume(volume, **how)  # so that both find the files in memory
            cpu_here, cpu_there = time.process_time(), client.run(time.process_time)
            one = [seconds_of(partial(lc.count_volume, volume, **how)) for _ in range(n_turns)]
            cpu_here = time.process_time() - cpu_here
            with one_core():
                narrow = min(seconds_of(partial(lc.count_volume, volume, **how))[0] for _ in range(n_turns))
            many = [seconds_of(partial(lc.count_volume, volume, client=client, **how)) for _ in range(n_turns)]
            cpu_there = [seconds - cpu_there[name] for name, seconds in client.run(time.process_time).items()]
            alone, together = (min(seconds for seconds, _ in times) for times in (one, many))
            found[protocol] = {
                "candidates": len(one[0][1].candidates),
                "one process, s": round(alone, 2),
                "two workers, s": round(together, 2),
                "times faster": round(alone / together, 2),
                "one process on one core, s": round(narrow, 2),
                "times faster than on one core": round(narrow / together, 2),
                "CPU of one process / of the busier worker": round(cpu_here / max(cpu_there), 2),
                "identical": all(is_same(one[0][1], result) for _, result in many),
                "MB a worker": round(max(client.run(megabytes).values())),
            }
    return found


def growth(folder: Path, side: int) -> dict[str, Any]:
    """Slopes of the CPU seconds of one process, which a machine that does other things as well distorts least."""
    sides = [one for one in (side // 4, 3 * side // 8, side // 2, 3 * side // 4, side) if one % CHUNK == 0]
    cpu = [cpu_of(filled(folder / f"{one}.zarr", one, lesions_per_chunk=8)) for one in sides]
    found: dict[str, Any] = {"voxels": [one**3 for one in sides], "CPU s": [round(one, 3) for one in cpu]}
    found["slope by voxels"] = slope(found["voxels"], cpu)
    many = [8, 64, 512, 4096]
    cpu = [cpu_of(filled(folder / f"of{n}.zarr", side // 2, lesions_per_chunk=n)) for n in many]
    found["candidates in the same voxels"] = [n * (side // 2 // CHUNK) ** 3 for n in many]
    found["CPU s of these"] = [round(one, 3) for one in cpu]
    return found


def slope(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """How fast the logarithm of a cost grows with that of a size; 1 is in proportion."""
    return round(float(np.polyfit(np.log(sizes), np.log(costs), 1)[0]), 3)


def cpu_of(volume: Any) -> float:
    """The least CPU seconds of a few counts; the first one finds the files in memory for the others."""
    found = []
    for _ in range(4):
        began = time.process_time()
        lc.count_volume(volume, **OPTIONS)
        found.append(time.process_time() - began)
    return min(found[1:])


def filled(path: Path, side: int, *, lesions_per_chunk: int) -> Any:
    """Faint noise everywhere, and in each chunk so many lesions of 2³ voxels, apart from each other."""
    rng = np.random.default_rng(side)
    volume = zarr.create_array(str(path), shape=(side,) * 3, chunks=(CHUNK,) * 3, dtype="u1")
    cells = CHUNK // 8
    for begin in np.ndindex(*(side // CHUNK,) * 3):
        voxels = rng.integers(0, 20, (CHUNK,) * 3, np.uint8)
        at = np.unravel_index(rng.choice(cells**3, lesions_per_chunk, replace=False), (cells,) * 3)
        for step in np.ndindex(2, 2, 2):
            place = tuple(8 * axis + 3 + one for axis, one in zip(at, step, strict=True))
            voxels[place] = rng.integers(30, 256, lesions_per_chunk)
        volume[tuple(slice(i * CHUNK, (i + 1) * CHUNK) for i in begin)] = voxels
    return volume


def sites(rng: np.random.Generator, grid: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Where eight chunks are stored, none of them twice; on the seams of the largest boxes, too."""
    taken = np.zeros(grid, bool)
    found: list[tuple[int, ...]] = []
    wanted = [tuple(int(i) for i in grid // 2 - 1)]
    while len(found) < n:
        place = wanted.pop() if wanted else tuple(int(i) for i in rng.integers(0, grid - 1))
        box = tuple(slice(i, i + 2) for i in place)
        if not taken[box].any():
            taken[box] = True
            found.append(place)
    return np.array(found)


def draw_site(rng: np.random.Generator, n: int) -> tuple[NDArray[np.uint8], list[dict[str, Any]]]:
    """Lesions in eight chunks: inside of one, and across faces, edges and the corner, as boxes or chains of corners."""
    voxels = np.zeros((SITE,) * 3, np.uint8)
    drawn: list[dict[str, Any]] = []
    while len(drawn) < n:
        is_across = rng.random(3) < rng.choice([0.0, 0.4, 1.0], p=[0.3, 0.4, 0.3])
        sides = rng.integers(2, 9, 3) if rng.random() < 0.7 else np.full(3, rng.integers(2, 9))
        low = np.where(is_across, CHUNK - rng.integers(1, sides), rng.integers(2, SITE - 11, 3))
        around = tuple(slice(first - 1, first + side + 1) for first, side in zip(low, sides, strict=True))
        if voxels[around].any():
            continue
        if sides[0] == sides[1] == sides[2]:
            steps = np.arange(sides[0])
            turned = rng.random(3) < 0.5
            at = [low[axis] + (steps[::-1] if turned[axis] else steps) for axis in range(3)]
        else:
            at = [low[axis] + index.ravel() for axis, index in enumerate(np.indices(sides))]
        voxels[tuple(at)] = rng.integers(30, 200, len(at[0]))
        peak = int(rng.integers(len(at[0])))
        voxels[at[0][peak], at[1][peak], at[2][peak]] = value = rng.integers(200, 256)
        drawn.append({
            "n_voxels": len(at[0]),
            "peak_probability": value / 255,
            **{f"peak_index-{axis}": at[axis][peak] for axis in range(3)},
            **{f"bbox-{axis}": low[axis] for axis in range(3)},
            **{f"bbox-{axis + 3}": low[axis] + sides[axis] for axis in range(3)},
        })  # fmt: skip
    return voxels, drawn


def draw_sparse(folder: Path, shape: tuple[int, ...]) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The volume, and the columns that a table of its lesions must have."""
    rng = np.random.default_rng(1)
    volume = zarr.create_array(str(folder / "sparse.zarr"), shape=shape, chunks=(CHUNK,) * 3, dtype="u1")
    n_sites = max(1, round(0.01 * volume.nchunks / 8))
    n_lesions = round(LESIONS_PER_CHUNK * volume.nchunks)
    shares = np.diff(np.linspace(0, n_lesions, n_sites + 1).round().astype(int))
    rows: list[dict[str, Any]] = []
    for place, n in zip(sites(rng, np.array(shape) // CHUNK, n_sites), shares, strict=True):
        first = place * CHUNK
        voxels, drawn = draw_site(rng, int(n))
        volume[tuple(slice(i, i + SITE) for i in first)] = voxels
        for row in drawn:
            moved = {f"{name}-{axis}": row[f"{name}-{axis}"] + first[axis % 3]
                     for name, n_axes in (("peak_index", 3), ("bbox", 6)) for axis in range(n_axes)}  # fmt: skip
            rows.append(row | moved)
    return volume, {name: np.array([row[name] for row in rows]) for name in rows[0]}


def kill_one(pid: int, after_s: float) -> None:
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)


def two_again(client: distributed.Client, killed: int) -> None:
    """Wait until another worker has taken the place of the one that was killed."""
    for _ in range(60):
        with suppress(OSError):
            pids = client.run(os.getpid).values()
            if len(pids) == 2 and killed not in pids:
                return
        time.sleep(0.5)
    raise SystemExit("No worker has taken the place of the one that was killed.")


def sparse(folder: Path, shape: tuple[int, ...]) -> dict[str, Any]:
    volume, truth = draw_sparse(folder, shape)
    found: dict[str, Any] = {"chunks": volume.nchunks, "stored": volume.nchunks_initialized}
    with two_workers() as client:
        calm, expected = seconds_of(lambda: lc.count_volume(volume, client=client, **OPTIONS))
        found |= {"seconds": round(calm, 1), "MB a worker": round(max(client.run(megabytes).values()))}
        killed = next(iter(client.run(os.getpid).values()))
        killer = threading.Thread(target=kill_one, args=(killed, calm / 2))
        killer.start()
        labels = folder / "labels.zarr"
        seconds, result = seconds_of(lambda: lc.count_volume(volume, client=client, labels=labels, **OPTIONS))
        killer.join()
        two_again(client, killed)
        found |= {"seconds with labels and a worker killed": round(seconds, 1)}
        found |= {"MB a worker, then": round(max(client.run(megabytes).values())), "MB here": round(megabytes())}
    found["candidates"] = len(result.candidates)
    found["identical without the killed worker"] = is_same(result, expected)
    found["identical to the truth"] = as_drawn(result, truth)
    found["labels as drawn"] = labels_as_drawn(zarr.open_array(str(labels), mode="r"), result)
    return found


def as_drawn(result: lc.LesionCount, truth: dict[str, NDArray[Any]]) -> bool:
    """Whether the table is the one of the lesions that were drawn, each of which has one highest voxel."""
    columns = result.candidates.columns()
    mine, drawn = (np.lexsort([table[f"peak_index-{axis}"] for axis in range(3)]) for table in (columns, truth))
    return len(mine) == len(drawn) and all(
        np.allclose(columns[name][mine], column[drawn], rtol=0, atol=1e-12) for name, column in truth.items()
    )


def labels_as_drawn(labels: Any, result: lc.LesionCount) -> bool:
    """Whether each label has as many voxels as its row says, all of them in its box; looked at in every 50th row."""
    columns = result.candidates.columns()
    for row in range(0, len(result.candidates), 50):
        box = tuple(slice(int(columns[f"bbox-{a}"][row]), int(columns[f"bbox-{a + 3}"][row])) for a in range(3))
        if np.count_nonzero(labels[box] == row + 1) != columns["n_voxels"][row]:
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("dense", "sparse", "growth"))
    warnings.simplefilter("ignore")  # of Dask, whose worker is killed
    parser.add_argument("--side", type=int, default=1024, help="a multiple of 256")
    parser.add_argument("--shape", type=int, nargs=3, default=SPARSE, help="of the sparse volume, multiples of 256")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.which == "sparse":
            found = sparse(Path(folder), tuple(options.shape))
        else:
            found = {"dense": dense, "growth": growth}[options.which](Path(folder), options.side)
    print(json.dumps(found, indent=2, default=str))


if __name__ == "__main__":
    main()
