"""What a zarr store says of itself: its attributes and its description, none of which is trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import RemotePath

METADATA = (".zarray", "zarr.json")

# Where a group has its attributes: in version 2 of the format, and in version 3.
_ATTRIBUTES = (".zattrs", "zarr.json")

# Attributes may be many, but a description of an array is text of some hundred characters.
_LONGEST_METADATA = 1 << 24


def inside(path: Path, name: str) -> Path:
    """A path in a store; of a server, its query is that of the store."""
    return path.inside(name) if isinstance(path, RemotePath) else path / name


def attributes_of(path: Path) -> Mapping[str, Any]:
    """The attributes of a group; none of what is not one."""
    for name in _ATTRIBUTES:
        content = _json(path, name)
        if name == "zarr.json" and content.get("node_type") == "group":
            content = content.get("attributes", {})
        elif name == "zarr.json":
            content = {}
        if isinstance(content, dict) and content:
            return content
    return {}


@lru_cache(maxsize=64)
def is_remote_zarr(path: RemotePath) -> bool:
    """Whether there is an array or a group at a path whose name does not say it."""
    return any(_json_bytes(path, name) is not None for name in (*METADATA, ".zgroup"))


def is_ome_group(path: Path) -> bool:
    """Whether a folder is a group of OME-Zarr 0.4, whatever it is called; those of 0.5 have a ``zarr.json``."""
    try:
        return (path / ".zgroup").is_file() and "multiscales" in _json(path, ".zattrs")
    except MapFileError:
        return False


def _json_bytes(path: Path, name: str) -> bytes | None:
    file = inside(path, name)
    if not isinstance(file, RemotePath) and not file.is_file():  # a server is asked once
        return None
    try:
        with file.open("rb") as stream:
            return bytes(stream.read(_LONGEST_METADATA + 1))
    except FileNotFoundError:
        return None


def _json(path: Path, name: str) -> dict[str, Any]:
    """A file of a store that describes it, empty if there is none; raise if it is no JSON, or endless."""
    content = _json_bytes(path, name)
    if content is None:
        return {}
    if len(content) > _LONGEST_METADATA:
        raise MapFileError(f"{inside(path, name)} is too long to be the description of an array.")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MapFileError(f"{inside(path, name)} is not the description of an array: {str(error)[:200]}.") from None
    return found if isinstance(found, dict) else {}


def checked_format(path: Path) -> int | None:
    """The version of the format, None if there is no array; raise for a description that is no JSON, or is endless.

    One of version 2 that names a codec which can run code is refused.
    """
    if _json(path, "zarr.json"):
        return 3
    description = _json(path, ".zarray")
    if '"id": "pickle"' in json.dumps(description):
        raise MapFileError(f"{path} holds pickled Python objects, which can run code when they are opened.")
    return 2 if description else None
