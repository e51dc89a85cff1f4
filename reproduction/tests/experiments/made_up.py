"""Numbers of scans as experiments keep them, from maps that no network has seen, and trainings that never were."""

from dataclasses import replace

import numpy as np
from scipy import ndimage

from lesioncount_reproduction.experiments.kept_files import save_arrays
from lesioncount_reproduction.experiments.stats import ScanStats, map_numbers

# Scores of validation scans after each epoch.
FLAT, FALLING = [0.9, 0.5, 0.4, 0.39, 0.385, 0.382, 0.381, 0.38], [0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35]
COUNTS = np.array([0] * 24 + [1] * 10 + [2] * 6)


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


def keep(study, head, curve, n_wrong, share=1.0):
    """Trainings whose score went like this, and which count so many of forty scans wrong."""
    maps, masks = some_maps(len(COUNTS))
    stats = stats_of(maps, masks, counts=COUNTS)
    said = COUNTS.copy()
    said[:n_wrong] = 3
    log_probs = np.log(np.where(np.arange(5) == said[:, None], 0.96, 0.01))
    for job in study.trainings(head, share=share):
        write(job, study.cache, curve, replace(stats, log_probs=log_probs))


def write(job, cache, curve, stats):
    """The file that a training would have left."""
    arrays = {f"val_best_{name}": array for name, array in stats.arrays().items()}
    save_arrays(job.path(cache), {"curve": np.array(curve)} | arrays)
