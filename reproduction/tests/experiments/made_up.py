"""Numbers of scans as experiments keep them, from maps that no network has seen."""

import numpy as np
from scipy import ndimage

from lesioncount_reproduction.experiments.stats import ScanStats, map_numbers


def some_maps(n, seed=0, shape=(9, 12, 10)):
    """Maps with a few soft blobs, and masks that agree with most of them."""
    rng = np.random.default_rng(seed)
    smooth = ndimage.gaussian_filter(rng.normal(size=(n, *shape)), (0, 1.2, 1.2, 1.2)[: len(shape) + 1])
    logits = 18 * smooth - 3 + rng.normal(0, 1.5, (n, *shape))
    maps = (1 / (1 + np.exp(-logits))).astype(np.float32)
    masks = (smooth > np.quantile(smooth, 0.93)).astype(np.uint8)
    return maps, masks


def stats_of(maps, masks, counts=None, patients=None):
    """What would be kept of these maps; a patient for each scan unless they are given."""
    numbers = [map_numbers(map_, mask) for map_, mask in zip(maps, masks, strict=True)]
    n = len(numbers)
    uniform = np.full((n, 5), np.log(0.2))
    return ScanStats.of(
        numbers,
        names=tuple(f"scan{i}" for i in range(n)),
        patients=tuple(f"p{i}" for i in range(n)) if patients is None else tuple(patients),
        counts=np.zeros(n, dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64),
        log_probs=uniform,
    )
