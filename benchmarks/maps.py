"""Maps to time: lesions as boxes of 3³ voxels over a background below 0.05, and noise as early training makes it."""

import numpy as np
from numpy.typing import NDArray


def boxes(shape: tuple[int, int, int], n: int) -> NDArray[np.float32]:
    """So many boxes at random places over faint noise. Filled in place: nothing but the map is allocated."""
    rng = np.random.default_rng(0)
    p = np.empty(shape, dtype=np.float32)
    for plane in p:
        rng.random(out=plane, dtype=np.float32)
        np.multiply(plane, 0.05, out=plane)
    for _ in range(n):
        corner = [int(rng.integers(0, side - 3)) for side in shape]
        p[tuple(slice(at, at + 3) for at in corner)] = rng.uniform(0.2, 1)
    return p


def noise(shape: tuple[int, int, int], share: float) -> NDArray[np.float32]:
    """A map whose voxels are above 0.1 with this probability, each on its own."""
    rng = np.random.default_rng(0)
    u = rng.random(shape, dtype=np.float32)
    return np.where(u < share, 0.101 + 0.898 * u / share, 0.09 * u).astype(np.float32)
