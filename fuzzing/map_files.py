"""Small valid maps in every format, and each with a change that its format gives meaning to."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing.damage import damaged, set_field
from fuzzing.odd_text import odd_json, odd_text

Rng = np.random.Generator
Plan = dict[str, Any]

_KINDS = ("<f4", "<f4", ">f4", "<f8", "<f2", "|u1", "<i2", "|b1")


def a_map(rng: Rng, *, channels: bool = True) -> NDArray[Any]:
    """Some lesions on a background that is not quite 0; now and then 2-D, with channels, or of another type."""
    shape = tuple(int(n) for n in rng.integers(2, 9, 2 if rng.random() < 0.15 else 3))
    if channels and len(shape) == 3 and rng.random() < 0.2:
        shape = (2, *shape)
    values = rng.random(shape) ** 6
    kind = np.dtype(_KINDS[int(rng.integers(len(_KINDS)))])
    return (values > 0.3).astype(kind) if kind.kind in "biu" else values.astype(kind)


def make_nifti(rng: Rng, _: Path, folder: Path) -> Plan:
    """NIfTI 1 and 2, compressed or not: header fields, voxels, or the compressed bytes."""
    import nibabel

    values = a_map(rng).astype("<f4")
    kind: Any = nibabel.Nifti2Image if rng.random() < 0.4 else nibabel.Nifti1Image
    image = kind(np.moveaxis(values, 0, -1) if values.ndim == 4 else values, np.diag([1.0, 2.0, 1.5, 1.0]))
    content = image.to_bytes()
    compressed = rng.random() < 0.5
    roll = rng.random()
    if roll < 0.6:
        size = kind.header_class.template_dtype.itemsize
        head = content[:size]
        for _ in range(int(rng.integers(1, 3))):
            head = set_field(rng, head, kind.header_class.template_dtype)
        content = head + content[size:]
    elif roll < 0.8 or not compressed:
        content = damaged(rng, content)
    if compressed:
        content = gzip.compress(content, mtime=0)
        content = damaged(rng, content) if roll >= 0.8 else content
    path = folder / ("map.nii.gz" if compressed or rng.random() < 0.1 else "map.nii")
    path.write_bytes(content)
    return {"path": path.name, "channel": _channel(rng, values)}


def npy_bytes(rng: Rng, values: NDArray[Any]) -> bytes:
    """An array as a file, perhaps with another header, or damaged."""
    stream = io.BytesIO()
    np.save(stream, np.asfortranarray(values) if rng.random() < 0.3 else values)
    content = stream.getvalue()
    roll = rng.random()
    if roll < 0.5:
        n = int.from_bytes(content[8:10], "little")
        header = odd_text(rng, content[10 : 10 + n].decode("latin-1")).encode("latin-1", "replace")
        if rng.random() < 0.8:  # of the length that is said
            header = header[:n].ljust(n)
        return content[:10] + header + content[10 + n :]
    return damaged(rng, content) if roll < 0.9 else content


def make_npy(rng: Rng, _: Path, folder: Path) -> Plan:
    """A numpy file."""
    values = a_map(rng)
    (folder / "map.npy").write_bytes(npy_bytes(rng, values))
    return {"path": "map.npy", "channel": _channel(rng, values)}


def make_npz(rng: Rng, _: Path, folder: Path, name: str = "map") -> Plan:
    """An archive of one array, or of a few, in any compression that zip has."""
    values = a_map(rng)
    stream = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
    with zipfile.ZipFile(stream, "w", methods[int(rng.integers(4))]) as archive:
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), npy_bytes(rng, values), archive.compression)
        if rng.random() < 0.1:
            archive.writestr(zipfile.ZipInfo("other.npy"), b"nothing")
    content = stream.getvalue()
    (folder / "map.npz").write_bytes(damaged(rng, content) if rng.random() < 0.5 else content)
    return {"path": "map.npz", "channel": _channel(rng, values)}


def make_nnunet(rng: Rng, home: Path, folder: Path) -> Plan:
    """Probabilities of nnU-Net beside their segmentation, with a change in one of the files."""
    shutil.copytree(home / "nnunet", folder, dirs_exist_ok=True)
    path = sorted(folder.iterdir())[int(rng.integers(4))]
    if rng.random() < 0.2:
        return make_npz(rng, home, folder, "probabilities")
    if path.suffix == ".json":
        path.write_text(odd_json(rng, json.loads(path.read_text())), "utf-8", "replace")
    elif path.suffix == ".npz" and rng.random() < 0.7:
        values = np.load(path)["probabilities"]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("probabilities.npy"), npy_bytes(rng, values))
    else:
        path.write_bytes(damaged(rng, path.read_bytes()))
    return {"path": "map.npz", "channel": 1}


def make_zarr(rng: Rng, _: Path, folder: Path) -> Plan:
    """Zarr 2 or 3: its description as JSON, or a chunk."""
    import zarr

    values = a_map(rng).astype("<f4")
    store = folder / "map.zarr"
    chunks = tuple(int(rng.integers(1, n + 1)) for n in values.shape)
    array = zarr.create_array(
        store=str(store), shape=values.shape, chunks=chunks, dtype="float32", zarr_format=int(rng.integers(2, 4))
    )
    array[...] = values
    files = sorted(path for path in store.rglob("*") if path.is_file())
    descriptions = [path for path in files if path.name in (".zarray", "zarr.json", ".zattrs")]
    path = (descriptions if rng.random() < 0.6 else files)[0]
    if path in descriptions:
        path.write_text(odd_json(rng, json.loads(path.read_text())), "utf-8", "replace")
    else:
        path = next(file for file in files if file not in descriptions)
        path.write_bytes(damaged(rng, path.read_bytes())) if rng.random() < 0.9 else path.unlink()
    return {"path": "map.zarr", "channel": _channel(rng, values)}


def make_nrrd(rng: Rng, _: Path, folder: Path) -> Plan:
    """NRRD, with its voxels in the file or beside it."""
    return _make_itk(rng, folder, ("map.nrrd", "map.nhdr"))


def make_metaimage(rng: Rng, _: Path, folder: Path) -> Plan:
    """MetaImage, with its voxels in the file or beside it."""
    return _make_itk(rng, folder, ("map.mha", "map.mhd"))


def _make_itk(rng: Rng, folder: Path, names: tuple[str, str]) -> Plan:
    import SimpleITK as sitk  # noqa: N813 - as its manual has it

    values = a_map(rng).astype("<f4")
    image = sitk.GetImageFromArray(values)
    path = folder / names[int(rng.random() < 0.4)]
    sitk.WriteImage(image, str(path), bool(rng.random() < 0.5))
    beside = [file for file in folder.iterdir() if file != path]
    if beside and rng.random() < 0.15:
        path_of_voxels = beside[0]
        path_of_voxels.write_bytes(damaged(rng, path_of_voxels.read_bytes()))
    else:
        content = path.read_bytes()
        end = content.find(b"ElementDataFile" if path.suffix in (".mha", ".mhd") else b"\n\n")
        end = content.find(b"\n", end) + 1 if path.suffix in (".mha", ".mhd") else end
        if end > 0 and rng.random() < 0.8:
            header = odd_text(rng, content[:end].decode("latin-1")).encode("latin-1", "replace")
            path.write_bytes(header + content[end:])
        else:
            path.write_bytes(damaged(rng, content))
    return {"path": path.name, "channel": _channel(rng, values)}


def make_dicom(rng: Rng, home: Path, folder: Path) -> Plan:
    """A DICOM segmentation, now and then deflated: an element changed or left out, or its bytes damaged."""
    import pydicom

    path = folder / "map.dcm"
    if rng.random() < 0.4:
        path.write_bytes(damaged(rng, (home / "seg.dcm").read_bytes()))
        return {"path": path.name, "channel": None}
    data = pydicom.dcmread(home / "seg.dcm")
    if rng.random() < 0.2:
        data.file_meta.TransferSyntaxUID = pydicom.uid.DeflatedExplicitVRLittleEndian
    try:
        for _ in range(int(rng.integers(1, 3))):
            _change_element(rng, data)
        data.save_as(path)
        if data.file_meta.TransferSyntaxUID.is_deflated and rng.random() < 0.3:
            path.write_bytes(damaged(rng, path.read_bytes()))
    except Exception:  # noqa: BLE001 - what pydicom does not write is written as bytes
        path.write_bytes(damaged(rng, (home / "seg.dcm").read_bytes()))
    return {"path": path.name, "channel": None}


def _change_element(rng: Rng, data: Any) -> None:
    """One element of a data set, or of one inside it."""
    tags = list(data.keys())
    if not tags:
        return
    element = data[tags[int(rng.integers(len(tags)))]]
    if element.VR == "SQ" and len(element.value) and rng.random() < 0.8:
        _change_element(rng, element.value[int(rng.integers(len(element.value)))])
        return
    numbers = {
        "US": (0, 1, 65535),
        "UL": (0, 1, 2**32 - 1),
        "IS": (0, -1, 2**31 - 1),
        "DS": ("0", "-1", "1e300", "0.5"),
    }
    if rng.random() < 0.3:
        del data[element.tag]
    elif element.VR in numbers:
        choices = numbers[element.VR]
        element.value = choices[int(rng.integers(len(choices)))]
    elif element.VR == "SQ":
        element.value = []
    elif isinstance(element.value, bytes):
        element.value = damaged(rng, element.value)[: len(element.value)]
    else:
        element.value = ("", "X", "BINARY", "1.2.3")[int(rng.integers(4))]


def _channel(rng: Rng, values: NDArray[Any]) -> int | None:
    return int(rng.integers(2)) if values.ndim == 4 or rng.random() < 0.05 else None
