"""What an earlier run in a folder of results means for the next one: who has which name, and with which settings.

A name never passes from one patient to another. The run lists its inputs from its first moment. Where it does not list
a name, the record on disk is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lesioncount.cohort.item import Known
from lesioncount.errors import MapFileError
from lesioncount.folder.atomic import is_certified_text
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import decoded, in_one_line
from lesioncount.results.record import Record
from lesioncount.results.record_files import record_in
from lesioncount.results.recorded import FREE, Recorded
from lesioncount.results.run_file import RUN_FILE, Run, find_run

# Letters of a setting that a message shows.
_SHOWN = 60

# Settings that messages name by their parts.
_BY_PARTS = frozenset({"protocol", "calibration", "calibrations", "fingerprints"})

# Settings that have another name than their option.
_OPTIONS = {"listed": "--list"}

# A name, and the maps that have it or are about to get it.
Named = tuple[str, Sequence[Path]]


def earlier_run(folder: OutputFolder, command: str, *, of_changes: bool, may_be: bool) -> Run | None:
    """The run that is in a folder; it may be there only if it goes on or is replaced, or if all of it failed.

    Parameters
    ----------
    folder : OutputFolder
    command : str
        Which makes runs of the kind that is asked for.
    of_changes : bool
        Whether that is a comparison.
    may_be : bool
    """
    folder.check([RUN_FILE])
    if not (folder.path / RUN_FILE).exists():
        return None
    run = find_run(folder.path)
    if run is None or run.is_of_changes != of_changes:
        raise MapFileError(
            f"{folder.path} holds other results, not those of lesioncount {command}. Choose another folder."
        )
    if not may_be and not run.is_all_failed:
        raise _in_the_way(folder)
    return run


def names_before(
    folder: OutputFolder, given: Sequence[Named], before: Run | None, now: Run, *, resume: bool, overwrite: bool
) -> Collection[str]:
    """The names that have results already; raise if one would pass to somebody else, or settings would change."""
    if before is not None and resume:
        _check_goes_on(folder.path, _flat(before.settings), _flat(now.settings))
        if before.given is not None and now.given is not None:
            _check_goes_on(folder.path, *(dict.fromkeys(run.given or (), "given") for run in (before, now)))
    listed = {} if before is None else before.known
    if overwrite:
        return {name for name, _ in given if name in listed or folder.is_ours(record_in(folder.path, name))}
    known = _checked_names(folder, given, listed)
    if known and before is None:  # somebody has removed run.json, or a power cut has lost it
        if not resume:
            raise _in_the_way(folder)
        settings = _read(folder.path / record_in(folder.path, min(known))).settings
        _check_goes_on(folder.path, {} if settings is None else _flat(settings), _flat(now.settings))
    return known


def _in_the_way(folder: OutputFolder) -> MapFileError:
    return MapFileError(
        f"{folder.path} holds the results of an earlier run. Choose another folder, continue that run (--resume), or "
        "replace its results (--overwrite)."
    )


def _checked_names(folder: OutputFolder, given: Sequence[Named], listed: Mapping[str, Known]) -> set[str]:
    known = set()
    for name, paths in given:
        owner = listed.get(name)
        if owner is None or not owner.is_of(paths):
            owner = _owner_of_record(folder, name) or owner
        if owner is None:
            continue
        known.add(name)
        if not owner.is_of(paths) and (_is_given(owner, given) or not owner.was_moved_to(paths)):
            raise MapFileError(
                f"{folder.path} holds results of {' and '.join(owner.paths)} under the name {name}, which {paths[-1]} "
                "would take over. Choose another folder for the results, replace them (--overwrite), or begin names "
                "further up (--root)."
            )
    return known


def _is_given(owner: Known, given: Sequence[Named]) -> bool:
    """Whether maps of somebody are given, too: then no others are his."""
    return any(owner.is_of(paths) for _, paths in given)


def _owner_of_record(folder: OutputFolder, name: str) -> Known | None:
    """Whose record has a name; None if there is none of ours, or a power cut has emptied it."""
    file = record_in(folder.path, name)
    path = folder.path / file
    if not folder.is_ours(file) or path.stat().st_size == 0:
        return None
    try:
        record = _read(path)
    except (OSError, ValueError) as error:
        raise _nobodys(path) from error
    files = record.all_files()
    paths = record.paths or tuple(one.path for one in files)
    if not any(paths):
        raise _nobodys(path)
    return Known(paths, tuple(one.sha256 for one in files))


def _read(path: Path) -> Record:
    """What a record says, whether or not it is one of this version; ValueError if it says nothing."""
    text = path.read_text("utf-8")
    return decoded(text, Record, is_ours=is_certified_text(path.name, text))


def _nobodys(path: Path) -> MapFileError:
    return MapFileError(
        f"{path} is a result of lesioncount, but does not say of which maps: another version may have written it. "
        "Choose another folder."
    )


def _check_goes_on(out: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise if an earlier run would go on with other settings, or with other kinds of files."""
    differ = [
        f"{name} is {_in_words(new.get(name))} instead of {_in_words(old.get(name))}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
    if differ:
        raise MapFileError(
            f"{out} was made with other settings: {', '.join(differ)}. Resume with the settings that are in "
            f"{out / RUN_FILE}, replace all results (--overwrite), or choose another folder."
        )


def _flat(settings: Recorded) -> dict[str, Any]:
    """All settings that decide what is counted, by the names that people know them by."""
    plain = settings.plain.items()
    flat = {_OPTIONS.get(name, name): value for name, value in plain if name not in FREE | _BY_PARTS}
    flat |= settings.protocol.to_dict() | {"calibration": settings.fingerprint()}
    of_changes = (kind for kind in settings.calibrations if kind != "lesions")
    return flat | {f"calibration of {kind} lesions": settings.fingerprint(kind) for kind in of_changes}


def _in_words(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else in_one_line(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
