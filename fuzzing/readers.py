"""Targets: maps in every format, counted and compared with an independent reading."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing import map_files, picture_files, reference
from fuzzing.cases import Numbers, Target
from fuzzing.commands import command

Plan = dict[str, Any]
Make = Callable[[np.random.Generator, Path, Path], Plan]

# Most inputs are counted by the function; some by the commands around it, which are slower.
_INSPECTED, _COUNTED_BY_COMMAND = 0.08, 0.08


def _make(make: Make, rng: np.random.Generator, home: Path, folder: Path) -> Plan:
    plan = make(rng, home, folder)
    roll = rng.random()
    plan["how"] = "inspect" if roll < _INSPECTED else "count" if roll < _INSPECTED + _COUNTED_BY_COMMAND else "function"
    return plan


def _handle(folder: Path, plan: Plan) -> Numbers | None:
    from lesioncount.runs import count_file

    path, channel = folder / plan["path"], plan["channel"]
    chosen: tuple[Any, ...] = () if channel is None else ("--channel", channel)
    scale = plan.get("scale")
    if plan["how"] == "inspect":
        command("inspect", path, *chosen)
        return None
    if plan["how"] == "count":
        chosen += () if scale is None else ("--scale", scale)
        command("count", path, "-o", folder / "out", "--write=labels", "--quiet", *chosen)
        return None
    existence = count_file(path, channel=channel, scale=scale).result.existence
    return Numbers(len(existence), tuple(sorted(map(float, existence))))


def _check(read: Callable[[Path, int | None], NDArray[Any]], folder: Path, plan: Plan) -> Numbers | None:
    values = read(folder / plan["path"], plan["channel"])
    if plan.get("scale") is not None:
        values = values * np.float64(plan["scale"])
    return reference.plain_count(values) if plan["how"] == "function" else None


def _target(make: Make, read: Callable[[Path, int | None], NDArray[Any]]) -> Target:
    return Target(partial(_make, make), _handle, partial(_check, read))


MAPS = {
    "nifti": _target(map_files.make_nifti, reference.read_nifti),
    "npy": _target(map_files.make_npy, reference.read_numpy),
    "npz": _target(map_files.make_npz, reference.read_numpy),
    "nnunet": _target(map_files.make_nnunet, reference.read_numpy),
    "zarr": _target(map_files.make_zarr, reference.read_zarr),
    "nrrd": _target(map_files.make_nrrd, reference.read_itk),
    "metaimage": _target(map_files.make_metaimage, reference.read_metaimage),
    "dicom": _target(map_files.make_dicom, reference.read_dicom),
    "tiff": _target(picture_files.make_tiff, reference.read_tiff),
    "png": _target(picture_files.make_png, reference.read_itk),
}
