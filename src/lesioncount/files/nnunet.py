"""Predictions of nnU-Net v2 with --save_probabilities: an ``.npz`` beside the segmentation it belongs to."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.arrays import load_array, shape_of_array, source_of_array
from lesioncount.files.nifti import open_nifti
from lesioncount.files.source import MapSource, chosen_channel

_KEY = "probabilities"

# Names in dataset.json that no channel of lesions has.
_NO_LABELS = ("background", "ignore")

# The plans of large datasets have some hundred kilobytes.
_LONGEST_JSON = 1 << 25


def is_nnunet(path: Path) -> bool:
    """Whether an ``.npz`` file holds nothing but an array called ``probabilities``, as nnU-Net writes it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist() == [f"{_KEY}.npy"]
    except Exception:  # noqa: BLE001 - what is wrong with an archive is for the reader to explain
        return False


def open_nnunet(path: Path, channel: int | None = None) -> MapSource:
    """The probabilities of one case, on the grid of its segmentation.

    nnU-Net stores (channel, z, y, x). The place in space is that of the segmentation of the same name; the ``.pkl``
    beside it is never opened, as pickles can run code. Readers that reorient store the probabilities in another
    orientation than the segmentation, and nothing in the file says so: that which reproduces the segmentation is taken.
    Without a channel, that of the only label in ``dataset.json`` is taken, and the name of the format says so.
    """
    chosen = checked_channel(path, channel)
    probabilities = load_array(path, _KEY)
    if chosen is None:
        return source_of_array(path, probabilities, channel, "npz")
    n_channels = len(probabilities)
    name = _label_names(path, n_channels).get(chosen) if channel is None else None
    called = "nnU-Net" if name is None else f"nnU-Net, channel {chosen}: {name}"
    segmentation = _segmentation_of(path)
    if segmentation is None:
        source = source_of_array(path, probabilities[chosen].T, None, called)
        return replace(source, n_channels=n_channels, read_from=files_read(path))
    predicted = _labels_of(path, probabilities).T
    if sorted(segmentation.shape) != sorted(predicted.shape):  # before any of its voxels are read
        raise MapFileError(
            f"{path}: the probabilities have shape {predicted.shape}, but the segmentation {segmentation.path.name} "
            f"has {segmentation.shape}. They do not belong together."
        )
    labels = segmentation.array()
    for turn in _orientations(path, segmentation.affine):
        turned = turn(predicted)
        if turned.shape == labels.shape and np.array_equal(turned, labels):
            grid = replace(segmentation.grid, path=path)
            source = source_of_array(path, turn(probabilities[chosen].T), None, called, grid)
            return replace(source, n_channels=n_channels, read_from=files_read(path))
    raise MapFileError(
        f"{path}: the probabilities do not reproduce the segmentation {segmentation.path.name} in any orientation that "
        "nnU-Net uses, so that their place in space is unknown. Was the segmentation changed afterwards, as by "
        "postprocessing? Move it elsewhere, and the probabilities are counted without a place in space."
    )


def checked_channel(path: Path, channel: int | None) -> int | None:
    """The channel to count, found without reading voxels; None if this is somebody else's array of that name."""
    shape = shape_of_array(path, _KEY)
    return chosen_channel(path, shape[0], channel, names=_label_names(path, shape[0])) if len(shape) == 4 else None


def _label_names(path: Path, n_channels: int) -> dict[int, str]:
    """The channels of labels by their names in ``dataset.json``; of regions, the first channel is no background."""
    content = _beside(path, "dataset.json")
    labels = content.get("labels")
    labels = (
        {name: label for name, label in labels.items() if name not in _NO_LABELS} if isinstance(labels, dict) else {}
    )
    first = 1 if content.get("regions_class_order") is None else 0
    if len(labels) + first != n_channels:
        return {}
    if first and all(map(_is_label, labels.values())):
        return {label: name for name, label in sorted(labels.items(), key=lambda item: item[1]) if label < n_channels}
    return dict(enumerate(labels, first))


def _orientations(path: Path, affine: NDArray[np.float64] | None) -> list[Callable[[NDArray[Any]], NDArray[Any]]]:
    """How the probabilities may have to be turned, the likeliest first: not at all, or from canonical orientation."""
    from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform

    # Where a header has no orientation, nibabel takes the first axis as running to the left.
    placed = np.diag([-1.0, 1.0, 1.0, 1.0]) if affine is None else affine
    back = ornt_transform(axcodes2ornt("RAS"), io_orientation(placed))
    turns: list[Callable[[NDArray[Any]], NDArray[Any]]] = [lambda a: a, lambda a: apply_orientation(a, back)]
    # Both fit where the segmentation is empty; then the reader that was used decides.
    return turns[::-1] if "Reorient" in str(_beside(path, "plans.json").get("image_reader_writer", "")) else turns


def _labels_of(path: Path, probabilities: NDArray[Any]) -> NDArray[Any]:
    """The segmentation that nnU-Net makes of its probabilities: (z, y, x)."""
    order = _beside(path, "dataset.json").get("regions_class_order")
    labels = np.zeros(probabilities.shape[1:], dtype=np.int32)
    if order is None:
        for z, plane in enumerate(labels):  # of all at once, numpy makes 64 bits per voxel
            plane[:] = probabilities[:, z].argmax(axis=0)
        return labels
    if not isinstance(order, list) or len(order) != len(probabilities) or not all(map(_is_label, order)):
        raise MapFileError(
            f"{path}: dataset.json has the order of regions {str(order)[:80]}, but there are {len(probabilities)} "
            "channels, and each must have the number of a label."
        )
    for label, region in zip(order, probabilities, strict=True):
        labels[region > 0.5] = label
    return labels


def _beside(path: Path, name: str) -> dict[str, Any]:
    """A JSON file that nnU-Net leaves with its predictions; empty where there is none."""
    file = _place_of(path, name)
    if not file.is_file():
        return {}
    if file.stat().st_size > _LONGEST_JSON:
        raise MapFileError(f"{path}: the file {file} beside it is too long to be of nnU-Net.")
    try:
        content = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise MapFileError(
            f"{path}: the file {file} beside it is not JSON as of nnU-Net: {str(error)[:200]}."
        ) from None
    return content if isinstance(content, dict) else {}


def _place_of(path: Path, name: str) -> Path:
    """In the folder of predictions; of a fold, which are in ``fold_0/validation``, in that of the model."""
    beside = path.parent / name
    if path.parent.name != "validation" or beside.is_file():
        return beside
    below = path if len(path.parents) > 2 else path.absolute()
    return below.parent.parent.parent / name


def _is_label(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**31


def files_read(path: Path) -> tuple[Path, ...]:
    """The probabilities, and the files that say where they are and what they mean."""
    beside = [_place_of(path, name) for name in ("dataset.json", "plans.json")]
    return (path, *(file for file in (_segmentation_beside(path), *beside) if file is not None and file.is_file()))


def _segmentation_of(path: Path) -> MapSource | None:
    beside = _segmentation_beside(path)
    return None if beside is None else open_nifti(beside)


def _segmentation_beside(path: Path) -> Path | None:
    stem = path.name[: -len(".npz")]
    return next((file for ending in (".nii.gz", ".nii") if (file := path.with_name(stem + ending)).is_file()), None)
