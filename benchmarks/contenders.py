"""The ways people find the highest voxel of each region today."""

import cc3d
import numba
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from skimage.measure import label, regionprops_table

THRESHOLD = 0.1


@numba.njit(cache=False)
def _maximum_per_label(labels, p, n):  # noqa: ANN001, ANN202 - numba infers them
    most = np.zeros(n + 1, np.float32)
    flat, values = labels.ravel(), p.ravel()
    for i in range(flat.size):
        k = flat[i]
        if k and values[i] > most[k]:
            most[k] = values[i]
    return most[1:]


def cc3d_and_compiled_max(p: NDArray[np.float32], neighbours: int) -> NDArray[np.float32]:
    """The fastest labelling there is, then one compiled pass for the maxima."""
    labels, n = cc3d.connected_components(p > THRESHOLD, connectivity=neighbours, return_N=True)
    return _maximum_per_label(labels, p, n)


def scipy_label_and_maximum(p: NDArray[np.float32]) -> NDArray[np.float32]:
    """What most scripts do."""
    labels, n = ndimage.label(p > THRESHOLD, np.ones((3, 3, 3)))
    return np.asarray(ndimage.maximum(p, labels, np.arange(1, n + 1)))


def skimage_regionprops(p: NDArray[np.float32]) -> NDArray[np.float32]:
    """What others do."""
    labels = label(p > THRESHOLD, connectivity=3)
    return regionprops_table(labels, p, properties=("intensity_max",))["intensity_max"]


def dense_masks(p: NDArray[np.float32]) -> NDArray[np.float32]:
    """One mask of the size of the map per instance, multiplied with the map: the paper's formula, taken literally."""
    labels, n = ndimage.label(p > THRESHOLD, np.ones((3, 3, 3)))
    masks = np.stack([labels == k for k in range(1, n + 1)]).astype(np.float32)
    return (masks * p).reshape(n, -1).max(axis=1)


def dense_masks_with_gradient(logits: torch.Tensor, counts: list[int]) -> None:
    """The same in training: the masks multiply the probabilities, so that the gradient passes through them."""
    loss = torch.zeros(())
    for item, count in zip(logits, counts, strict=True):
        probabilities = torch.sigmoid(item)
        labels, n = ndimage.label((probabilities.detach() > THRESHOLD).numpy(), np.ones((3, 3, 3)))
        masks = torch.stack([torch.from_numpy(labels == k) for k in range(1, n + 1)]).float()
        existence = (masks * probabilities).flatten(1).amax(1)
        pmf = torch.ones(1)
        for p in existence:
            pmf = torch.cat([pmf * (1 - p), torch.zeros(1)]) + torch.cat([torch.zeros(1), pmf * p])
        loss = loss - pmf[count].log()
    loss.backward()
