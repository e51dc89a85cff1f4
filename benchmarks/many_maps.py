"""Many small maps, all of them different, made as fast as they are counted."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
from isal import igzip
from numpy.typing import NDArray

SIDE = 32

# Maps of a folder: a cohort is not kept in one.
_PER_FOLDER = 1000


def make_maps(folder: Path, n: int, *, lesions: int = 5) -> None:
    """Write so many maps of 32³ voxels as ``.nii.gz``, with about so many candidates each."""
    rng = np.random.default_rng(n)
    header = _header()
    for number in range(n):
        path = folder / f"{number // _PER_FOLDER:03}" / f"scan{number:06}.nii.gz"
        if number % _PER_FOLDER == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(igzip.compress(header + _voxels(rng, lesions).tobytes(), 1))


def _voxels(rng: np.random.Generator, lesions: int) -> NDArray[np.float32]:
    """Lesions as cubes on a lattice, so that they do not touch, over nothing: as most of a map is."""
    cell = 8 if lesions <= (SIDE // 8) ** 3 else 5
    size = 3 if cell == 8 else 2
    p = np.zeros((SIDE,) * 3, np.float32)
    for place in rng.choice((SIDE // cell) ** 3, lesions, replace=False):
        i, j, k = (int(one) * cell for one in np.unravel_index(place, (SIDE // cell,) * 3))
        p[i : i + size, j : j + size, k : k + size] = rng.random((size,) * 3, np.float32) * rng.random() + 0.1
    return np.minimum(p, 1, out=p)


def _header() -> bytes:
    header = nibabel.Nifti1Header()
    header.set_data_dtype(np.float32)
    header.set_data_shape((SIDE,) * 3)
    header.set_sform(np.diag([1.0, 1.0, 1.0, 1.0]), code=1)
    header["vox_offset"] = 352
    header["magic"] = b"n+1"
    return bytes(header.binaryblock) + b"\0" * 4
