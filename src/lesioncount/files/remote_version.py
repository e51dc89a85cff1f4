"""What tells whether something that lives elsewhere was changed, without fetching it."""

from __future__ import annotations

import hashlib

from lesioncount.errors import MapFileError
from lesioncount.files.formats import map_ending
from lesioncount.files.remote_listing import objects_below
from lesioncount.files.remote_path import RemotePath


def version_of(path: RemotePath) -> str | None:
    """The version of an object, or of all objects of a zarr store; None if the server tells none.

    It never looks like a SHA-256 of content: ``etag "9b2c…", 1234 bytes`` or ``etags 1f0e…, 512 objects``.
    """
    if map_ending(path) == ".zarr":
        return _version_of_store(path)
    state = path.state()
    return None if state.version is None else f"etag {state.version}, {state.size} bytes"


def _version_of_store(path: RemotePath) -> str | None:
    if not path.is_listed:  # the description of an array does not change with its chunks
        return None
    digest, objects = hashlib.sha256(), objects_below(path)
    if not objects:
        raise MapFileError(f"{path} does not exist: nothing lies below that name.")
    for file, state in objects.items():
        digest.update(f"{file.below(path)}\t{state.size}\t{state.version}\n".encode())
    return f"etags {digest.hexdigest()}, {len(objects)} objects"
