"""What a DICOM file is, by its first bytes: whatever its name, and without any other package."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

# Segmentation Storage (BINARY, FRACTIONAL) and Label Map Segmentation Storage.
SEGMENTATIONS = ("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7")

_PREAMBLE, _LETTERS = 128, b"DICM"

# More than the file's own header has, which is a dozen short elements.
_READ = 4096

# Value representations whose length is four bytes, after two that are not used.
_LONG = (b"OB", b"OW", b"OF", b"OD", b"OL", b"SQ", b"UC", b"UN", b"UR", b"UT")

_MEDIA_STORAGE_SOP_CLASS = (0x0002, 0x0002)


def is_dicom(path: Path) -> bool:
    """Whether a file has the four letters that all DICOM files have, after a preamble that may hold anything."""
    return _head(path)[_PREAMBLE : _PREAMBLE + 4] == _LETTERS


def sop_class(path: Path) -> str | None:
    """The UID of what a DICOM file is, such as that of CT images; None if it is no DICOM file, or does not say."""
    head, at = _head(path), _PREAMBLE + 4
    if head[_PREAMBLE:at] != _LETTERS:
        return None
    with suppress(struct.error):
        while True:  # elements of group 2, which always are explicit and little-endian
            group, element = struct.unpack_from("<HH", head, at)
            is_long = head[at + 4 : at + 6] in _LONG
            (length,) = struct.unpack_from("<I" if is_long else "<H", head, at + (8 if is_long else 6))
            begin = at + (12 if is_long else 8)
            if (group, element) >= _MEDIA_STORAGE_SOP_CLASS:
                is_there = (group, element) == _MEDIA_STORAGE_SOP_CLASS
                return head[begin : begin + length].decode("ascii", "replace").rstrip("\0 ") if is_there else None
            at = begin + length
    return None


def is_other_dicom(path: Path) -> bool:
    """Whether a file says that it is DICOM, but no segmentation: an image, a report."""
    return sop_class(path) not in (None, *SEGMENTATIONS)


def _head(path: Path) -> bytes:
    with suppress(OSError, ValueError):  # a name that is too long, or no name
        if path.is_file():  # a pipe would wait
            with path.open("rb") as file:
                return file.read(_READ)
    return b""
