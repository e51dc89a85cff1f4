"""The paper's three steps written down plainly with scipy: slow, obvious, and what the compiled way must equal."""

import numpy as np
from scipy import ndimage


def structure(ndim, neighbours):
    return ndimage.generate_binary_structure(ndim, neighbours)


def label(probabilities, threshold, neighbours, mask=None):
    """Label map and number of regions. The threshold takes the type of the map, as in ``probabilities > threshold``."""
    foreground = probabilities > threshold
    if mask is not None:
        foreground &= mask
    return ndimage.label(foreground, structure(probabilities.ndim, neighbours))


def table(probabilities, labels, n):
    """Sizes, peaks, first peak positions, centroids and boxes of the regions 1 … n."""
    index = np.arange(1, n + 1)
    peaks = np.array([probabilities[labels == k].max() for k in index], dtype=np.float64)
    # The first voxel in C order that has the peak: ndimage.maximum_position does not promise which one it takes.
    positions = [
        np.unravel_index(
            np.flatnonzero((labels == k) & (probabilities == probabilities[labels == k].max()))[0], labels.shape
        )
        for k in index
    ]
    boxes = [[s.start for s in box] + [s.stop for s in box] for box in ndimage.find_objects(labels)]
    shape = (n, labels.ndim)
    return {
        "n_voxels": np.bincount(labels.ravel(), minlength=n + 1)[1:],
        "peak_probability": peaks,
        "peak_index": np.array(positions, dtype=np.int64).reshape(shape),
        "centroid": np.array(ndimage.center_of_mass(labels > 0, labels, index)).reshape(shape),
        "bbox": np.array(boxes, dtype=np.int64).reshape(n, 2 * labels.ndim),
    }


def poisson_binomial(probabilities):
    """The textbook recursion, one trial after the other, in whatever number type comes in."""
    pmf = [1]
    for p in probabilities:
        pmf = [a * (1 - p) + b * p for a, b in zip([*pmf, 0], [0, *pmf], strict=True)]
    return pmf
