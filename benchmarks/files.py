"""Time and memory of counting files, measured in processes of their own."""

import sys
import time
from pathlib import Path

import nibabel
import numpy as np
from maps import boxes


def make_nifti(path: Path, shape: tuple[int, int, int], n: int) -> None:
    """A map of boxes as ``.nii.gz``; its faint background is rounded, as resampled network outputs are in places."""
    p = boxes(shape, n)
    np.round(p, 3, out=p)
    nibabel.save(nibabel.Nifti1Image(p, np.eye(4)), path)


def make_network_maps(folder: Path, n: int) -> None:
    """Maps as networks give them, 25 MB each: smooth lesions on a background of noise that does not compress."""
    shape = (182, 218, 182)
    grid = np.ogrid[tuple(slice(n) for n in shape)]
    for seed in range(n):
        rng = np.random.default_rng(seed)
        p = rng.random(shape, np.float32) * np.float32(0.05)
        for _ in range(20):
            centre, radius, height = rng.uniform(10, 170, 3), rng.uniform(2, 6), rng.uniform(0.3, 1)
            distance = sum(((along - at) / radius) ** 2 for along, at in zip(grid, centre, strict=True))
            np.maximum(p, height * np.exp(-distance / 2), out=p, casting="same_kind")
        nibabel.save(nibabel.Nifti1Image(p, np.eye(4)), folder / f"scan{seed:02}.nii.gz")


def make_zarr(path: Path, side: int) -> None:
    """A cube of bytes, chunk by chunk."""
    import zarr

    array = zarr.create_array(str(path), shape=(side,) * 3, chunks=(32, 256, 256), dtype=np.uint8)
    rng = np.random.default_rng(0)
    plane = rng.integers(0, 12, (32, side, side), dtype=np.uint8)
    for begin in range(0, side, 32):
        block = plane.copy()
        block[10:14, 100 + begin : 104 + begin, 200:204] = 200
        array[begin : begin + 32] = block


def nibabel_seconds(path: str) -> float:
    """CPU seconds of loading alone, the usual way."""
    begin = time.process_time()
    nibabel.load(path).get_fdata()
    return time.process_time() - begin


def our_seconds_and_megabytes(path: str, scale: float | None = None) -> tuple[float, float]:
    """CPU seconds of reading and counting, and memory above that before."""
    from memory import highest_since, reset_highest

    from lesioncount.runs import count_file

    before = reset_highest()
    begin = time.process_time()
    count_file(path, scale=scale)
    return time.process_time() - begin, highest_since(before) / 1e6


if __name__ == "__main__":
    kind, path = sys.argv[1:3]
    if kind == "nibabel":
        print(nibabel_seconds(path))
    else:
        print(*our_seconds_and_megabytes(path, 1 / 255 if path.endswith(".zarr") else None))
