"""OME-Zarr images as files, made by hand from what the format says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import zarr

KINDS = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}


def write_ome(
    path: Path,
    levels: list[np.ndarray],
    *,
    axes: str = "zyx",
    version: str = "0.4",
    unit: str | None = "micrometer",
    scales: list[list[float]] | None = None,
    shared: list[dict[str, Any]] | None = None,
) -> Path:
    """Write an image; the voxel size doubles with every level unless scales are given."""
    v3 = version == "0.5"
    path.mkdir(parents=True)
    for number, voxels in enumerate(levels):
        names = {"dimension_names": list(axes)} if v3 else {}
        array = zarr.create_array(
            str(path / str(number)),
            shape=voxels.shape,
            chunks=tuple(min(8, n) for n in voxels.shape),
            dtype=voxels.dtype,
            zarr_format=3 if v3 else 2,
            **names,
        )
        array[...] = voxels
    scales = scales or [[1.0 if KINDS[axis] != "space" else 0.5 * 2**n for axis in axes] for n in range(len(levels))]
    multiscale: dict[str, Any] = {
        "axes": [
            {"name": axis, "type": KINDS[axis]} | ({"unit": unit} if unit and KINDS[axis] == "space" else {})
            for axis in axes
        ],
        "datasets": [
            {"path": str(number), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
            for number, scale in enumerate(scales)
        ],
    }
    if shared is not None:
        multiscale["coordinateTransformations"] = shared
    write_group(path, multiscale, version)
    return path


def write_group(path: Path, multiscale: dict[str, Any], version: str) -> None:
    """Write the description of an image."""
    if version == "0.5":
        attributes = {"ome": {"version": version, "multiscales": [multiscale]}}
        group = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        (path / "zarr.json").write_text(json.dumps(group))
    else:
        (path / ".zgroup").write_text('{"zarr_format": 2}')
        (path / ".zattrs").write_text(json.dumps({"multiscales": [{"version": version} | multiscale]}))
