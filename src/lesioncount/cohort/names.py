"""Paths of maps ↔ the names of scans in results.

A name is the path of the map below the folder that was given, with ``__`` between folders and without the ending:
``sub-01/ses-02/prob.nii.gz`` is ``sub-01__ses-02__prob``. Nothing else decides about it, so that it stays the same
whatever else is in the folder. In a BIDS tree, folders that the name of the file repeats are left out.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote_to_bytes

from lesioncount.cohort.whose import DATATYPES, BidsName, repeated_folders
from lesioncount.errors import MapFileError
from lesioncount.files.formats import scan_name

# Between folders, and never inside of them: of several underscores in a row, all but the first are escaped.
_BETWEEN = "__"

# Names of files in a folder of results that are not records of scans.
_RESERVED = ("run", "calibration", "evaluation", "summary", "dataset_description", "participants")

# Bytes of the longest name. File systems take 255 for a file, and label maps and temporary files have longer names.
_LONGEST = 180

# A part that nothing of is escaped in.
_PLAIN = re.compile(r"(?:[^\W_]|[.+=-]|(?<=[^_])_(?=[^_]))+")

# Digits of the hash that ends a name that was cut.
_DIGITS = 16


def name_of(relative: PurePosixPath) -> str:
    """The name of a scan, given the path of its map below the folder that was given.

    Examples
    --------
    >>> name_of(PurePosixPath("sub-01/ses-02/prob.nii.gz"))
    'sub-01__ses-02__prob'
    >>> name_of(PurePosixPath("sub-01/anat/sub-01_label-lesion_probseg.nii.gz"))
    'anat__sub-01_label-lesion_probseg'
    >>> name_of(PurePosixPath("Jane Doe/prob.nii.gz"))
    'Jane%20Doe__prob'
    """
    parts = [*relative.parts[:-1], scan_name(relative)]
    short = _without_repeated(parts)
    escaped = [_escaped(part) for part in short]
    if short == parts and _could_be_bids(parts):  # the name of a path in a BIDS tree
        escaped[-2] = _first_escaped(escaped[-2])
    name = _BETWEEN.join(escaped)
    if name.casefold() in _RESERVED or name.startswith("."):
        name = _first_escaped(name)
    if len(name.encode()) <= _LONGEST:
        return name
    digest = hashlib.sha256(os.fsencode("/".join(parts))).hexdigest()[:_DIGITS]
    return f"{name.encode()[: _LONGEST - _DIGITS - 1].decode(errors='ignore')}~{digest}"


def path_of(name: str) -> PurePosixPath | None:
    """The path that a name was made of, without its ending; None for one that was too long and is cut.

    Examples
    --------
    >>> path_of("anat__sub-01_label-lesion_probseg")
    PurePosixPath('sub-01/anat/sub-01_label-lesion_probseg')
    """
    if "~" in name:
        return None
    escaped = name.split(_BETWEEN)
    parts = [os.fsdecode(unquote_to_bytes(part)) for part in escaped]
    if escaped == [_escaped(part) for part in parts] and _could_be_bids(parts):
        *above, datatype, file = parts
        return PurePosixPath(*above, *BidsName.of(file).folders, datatype, file)
    return PurePosixPath(*parts)


# What stands for a character that names escape, in bytes of UTF-8.
_ESCAPES = re.compile(r"(?:%[0-9A-F]{2})+")


def shown_name(name: str) -> str:
    """A name as people wrote it, for tables and pages: ``Jane Doe`` for ``Jane%20Doe``.

    Two names are never shown alike: what is escaped for other reasons than its character (``__`` in the name of a file,
    the first letter of ``run``) stays so, as does what cannot be printed.

    Examples
    --------
    >>> shown_name("Plate1_A01%20DAPI__map"), shown_name("a_%5Fb")
    ('Plate1_A01 DAPI__map', 'a_%5Fb')
    """
    return _ESCAPES.sub(_unescaped, name) if "%" in name else name


def _unescaped(found: re.Match[str]) -> str:
    try:
        text = unquote_to_bytes(found[0]).decode()
    except UnicodeDecodeError:
        return found[0]
    return "".join(one if _is_shown(one) else "".join(f"%{byte:02X}" for byte in one.encode()) for one in text)


def _is_shown(one: str) -> bool:
    return one.isprintable() and not re.match(r"[\w.+=~%/-]", one)


def check_apart(names: Iterable[tuple[str, Path]]) -> None:
    """Raise if two scans would have the same name, which is so if they differ in their endings only."""
    taken: dict[str, Path] = {}
    for name, path in names:
        if name in taken:
            raise MapFileError(
                f"{taken[name]} and {path} differ in their endings only. If they hold the same scan, choose one of "
                f"them, such as --suffix {''.join(path.suffixes[-2:])}; if not, rename one."
            )
        taken[name] = path


def check_case(names: Iterable[str], out: Path) -> None:
    """Raise if names differ only in case, and the disk of the results does not tell such files apart."""
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(name.casefold(), name)
        if other != name and _ignores_case(out):
            raise MapFileError(
                f"The scans {other} and {name} differ only in case, and the disk of {out} would take their results for "
                "the same files. Rename one."
            )


def _ignores_case(folder: Path) -> bool:
    existing = next((one for one in (folder.absolute(), *folder.absolute().parents) if one.exists()), Path())
    other = existing.with_name(existing.name.swapcase()) if existing.name else existing
    return other.name != existing.name and other.exists() and other.samefile(existing)


def _without_repeated(parts: list[str]) -> list[str]:
    """Without the folders of a BIDS tree above that of the kind of data: the name of the file has them again."""
    n = repeated_folders(parts[:-1], parts[-1])
    return [*parts[: len(parts) - 1 - n], *parts[-2:]] if n else parts


def _could_be_bids(parts: list[str]) -> bool:
    return len(parts) > 1 and parts[-2] in DATATYPES and bool(BidsName.of(parts[-1]).folders)


def _escaped(part: str) -> str:
    """Without what file systems, tables or shells trip over, in a way that can be undone: ``%20`` for a space."""
    if _PLAIN.fullmatch(part):
        return part
    plain = "".join(one if re.match(r"[\w.+=-]", one) else quote(os.fsencode(one)) for one in part)
    plain = re.sub(r"(?<=_)_|^_|_$", "%5F", plain)
    return plain.replace("~", "%7E")  # `quote` leaves it; here it marks names that were cut


def _first_escaped(name: str) -> str:
    """With the first character, one of ASCII, escaped as well."""
    return f"%{ord(name[0]):02X}{name[1:]}"
