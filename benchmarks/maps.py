"""Maps to time: lesions as boxes of 3³ voxels or as hills over a background below 0.05, and noise of early training."""

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


def hills(shape: tuple[int, int, int], n: int) -> NDArray[np.float32]:
    """So many smooth lesions of 4 to 12 voxels across at random places, some of which touch, over faint noise."""
    rng = np.random.default_rng(0)
    p = boxes(shape, 0)
    reach = 7
    offsets = np.ogrid[(slice(-reach, reach + 1),) * 3]
    for _ in range(n):
        place = tuple(slice(at - reach, at + reach + 1) for at in (rng.integers(reach, side - reach) for side in shape))
        distance = sum((along / width) ** 2 for along, width in zip(offsets, rng.uniform(1.5, 4, 3), strict=True))
        p[place] = np.maximum(p[place], rng.uniform(0.3, 1) * np.exp(-distance))
    return p


def noise(shape: tuple[int, int, int], share: float) -> NDArray[np.float32]:
    """A map whose voxels are above 0.1 with this probability, each on its own."""
    rng = np.random.default_rng(0)
    u = rng.random(shape, dtype=np.float32)
    return np.where(u < share, 0.101 + 0.898 * u / share, 0.09 * u).astype(np.float32)
