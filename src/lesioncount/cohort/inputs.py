"""Files, folders and globs → the maps in them, and where they lie below the folder that was given."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath

from lesioncount.cohort.whose import DATATYPES, MAP_SUFFIX, BidsName
from lesioncount.errors import MapFileError, listed
from lesioncount.files.formats import file_ending, folder_ending, map_ending, scan_name
from lesioncount.files.remote_listing import matches
from lesioncount.files.remote_path import RemotePath, absolute_text, to_path
from lesioncount.folder.output import OutputFolder, listed_in

# Of a dataset in the manner of BIDS.
_DESCRIPTION = "dataset_description.json"

# What ends the names of images, masks and labels in BIDS: in its folders of data, these are no maps.
_NO_MAPS = re.compile(
    r"T[12]w|PDw|T2starw|FLAIR|PDT2|inplaneT[12]|UNIT1|MTw|MP2RAGE|angio|swi|[A-Za-z0-9]+map|bold|sbref|boldref|dwi|"
    r"asl|m0scan|cbf|pet|epi|phase\d?|phasediff|magnitude\d?|mask|dseg"
)


@dataclass(frozen=True)
class FoundMap:
    """A map, and its path below the folder that was given."""

    path: Path
    relative: PurePosixPath


def find_maps(inputs: Iterable[str | Path], *, leave_out: Path | None = None, suffix: str | None = None) -> list[Path]:
    """All maps that are meant, in the order of the inputs and sorted within each, and each name once.

    Links are not followed: two names of one file are two scans. In folders, results of ours are no inputs, nor what
    lies below ``leave_out``; nor, in BIDS datasets, anything but maps of probabilities, unless a suffix chooses others.
    """
    found: dict[str, Path] = {}
    problems: list[str] = []
    for text in inputs:
        if not str(text).strip():
            raise MapFileError("One of the inputs is empty. For the current folder write .")
        given = to_path(text)
        try:
            paths = _meant_by(given, leave_out, suffix)
        except MapFileError:
            raise
        except (OSError, ValueError) as error:  # a name that is too long, or no name: among others, a scan that fails
            problems.append(f"{str(given)[:80]} cannot be looked at: {error}.")
            paths = [given]
        for path in paths:
            _check_same_query(found.setdefault(absolute_text(path), path), path)
    if problems and len(problems) == len(found):
        raise MapFileError(problems[0])
    return list(found.values())


def _check_same_query(first: Path, path: Path) -> None:
    """Raise for two addresses that differ only in what is not recorded: they would be one scan."""
    if isinstance(first, RemotePath) and isinstance(path, RemotePath) and first.secret_address != path.secret_address:
        raise MapFileError(
            f"{path} was given twice, with two queries (what follows the ? in an address). Queries are in no result, "
            "so they cannot tell scans apart. Count each into a folder of its own."
        )


def below(root: Path, paths: Iterable[Path]) -> list[FoundMap]:
    """Maps with their paths below a folder."""
    found = []
    for path in paths:
        try:
            inside = path.below(root) if isinstance(path, RemotePath) else _below(absolute_text(path), root)
        except ValueError:
            raise MapFileError(f"{path} does not lie below {root}, which names are to begin at (--root).") from None
        found.append(FoundMap(path, inside))
    return found


def _below(path: str, root: Path) -> PurePosixPath:
    """An absolute path below a folder: of very many, texts are compared in a tenth of the time of paths."""
    folder = os.path.join(root, "")  # noqa: PTH118 - with a separator at its end
    if not path.startswith(folder) or path == folder:
        raise ValueError(f"{path} is not below {root}")
    return PurePosixPath(path[len(folder) :].replace(os.sep, "/"))


def root_of(inputs: Sequence[str | Path]) -> Path:
    """The folder that names of scans begin at.

    It is the folder that was given; of several, or of files, the innermost one that holds them all. The folder of a
    participant (``sub-01``) always belongs to the name.
    """
    root = common_folder([to_path(_folder_of(given)) for given in inputs])
    participants = [place for place, part in enumerate(root.parts) if re.fullmatch(r"sub-[A-Za-z0-9+]+", part)]
    return type(root)(*root.parts[: participants[-1]]) if participants else root


def common_folder(folders: Sequence[Path]) -> Path:
    """The innermost folder that holds all of some."""
    elsewhere = {folder.parts[:2] for folder in folders if isinstance(folder, RemotePath)}
    if not elsewhere:
        try:
            return Path(os.path.commonpath(folders))
        except ValueError:  # on Windows
            raise MapFileError("The inputs are on several drives. Count those of each drive by themselves.") from None
    if len(elsewhere) > 1 or not all(isinstance(folder, RemotePath) for folder in folders):
        raise MapFileError(
            "The inputs are in several places (buckets, servers, this machine), and names of scans begin at one. Count "
            "those of each place by themselves."
        )
    alike = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*(one.parts for one in folders), strict=False))
    return RemotePath(*(parts[0] for parts in alike))


def _folder_of(given: str | Path) -> str:
    given = to_path(given)
    if isinstance(given, RemotePath):
        return _remote_folder_of(given)
    absolute = Path(os.path.abspath(given))  # noqa: PTH100 - `absolute` keeps ..
    try:
        if absolute.exists():
            is_folder = absolute.is_dir() and map_ending(absolute) != ".zarr"
            return str(absolute if is_folder else absolute.parent)
    except (OSError, ValueError):  # no name of a file: the scan fails, and others are counted
        return str(absolute.parent)
    places = [place for place, part in enumerate(absolute.parts) if glob.has_magic(part)]
    return str(Path(*absolute.parts[: places[0]]) if places else absolute.parent)


def _remote_folder_of(given: RemotePath) -> str:
    """As of a file: a name with the ending of a map, or of a zarr store, is one map."""
    places = [place for place, part in enumerate(given.parts) if glob.has_magic(part)]
    if places:
        return str(RemotePath(*given.parts[: places[0]]))
    is_one = not given.is_listed or (given.key and map_ending(given) is not None)
    return str(RemotePath(*given.parts[:-1]) if is_one else given)


def _meant_by(given: Path, leave_out: Path | None, suffix: str | None) -> list[Path]:
    if isinstance(given, RemotePath) and _is_one_address(given):
        return [given]
    if not (isinstance(given, RemotePath) and glob.has_magic(given.key)) and given.exists():
        paths = [given]
    else:
        paths = matches(given, recursive=True)
        if not paths:
            raise MapFileError(f"{given} does not exist, and matches no file.")
    maps: list[Path] = []
    for path in paths:
        is_map = isinstance(path, RemotePath) and map_ending(path) is not None
        if is_map or not path.is_dir() or map_ending(path) == ".zarr":
            maps.append(path)
        else:
            maps += _chosen_in(path, leave_out, suffix)
    return maps


def _is_one_address(given: RemotePath) -> bool:
    """Whether an address is that of one map, which is looked at when its turn has come."""
    if glob.has_magic(given.key) or (given.is_listed and not given.key):
        return False
    return scan_name(given) != given.name or not given.is_listed


def _chosen_in(folder: Path, leave_out: Path | None, suffix: str | None) -> list[Path]:
    """The maps in a folder that are to be counted; an error if there are none, which says what there is."""
    everything = maps_in(folder)
    others = without_results(everything, folder)
    # Of many files in few folders, each folder is looked at once.
    is_left_out = cache(lambda parent: leave_out is not None and is_below(parent, leave_out))
    is_bids = cache(lambda parent: _in_dataset(parent, folder))
    kept = [file for file in others if not is_left_out(file.parent)]
    chosen = [file for file in kept if _is_chosen(file, suffix, is_bids)]
    if chosen:
        return _one_of_each(_without_pictures(chosen))
    there = listed((file.name for file in kept), 1)
    if kept and suffix is not None:
        raise MapFileError(f"No map in the folder {folder} ends in {suffix} (--suffix). There is {there}.")
    if kept:
        raise MapFileError(
            f"{folder} is a BIDS dataset, and none of its files ends in _{MAP_SUFFIX}. There is {there}. "
            "Choose others with --suffix, such as --suffix _prob."
        )
    but = " except results of lesioncount" if everything else ""
    raise MapFileError(
        f"There are no maps in the folder {folder}{but}. Maps end in .nii.gz, .nii, .npz, .npy, .zarr, …"
    )


def _is_chosen(file: Path, suffix: str | None, is_bids: Callable[[Path], bool]) -> bool:
    if suffix is not None:
        return file.name.endswith(suffix) or scan_name(file).endswith(suffix)
    name = BidsName.of(scan_name(file))
    if name.entities.get("desc", "").endswith("existence") and name.suffix == MAP_SUFFIX:
        return False  # a map that we made of another one
    if name.suffix == MAP_SUFFIX:
        return True
    if is_bids(file.parent):
        return False
    return not (name.folders and file.parent.name in DATATYPES and _NO_MAPS.fullmatch(name.suffix or ""))


def _one_of_each(files: list[Path]) -> list[Path]:
    """Without segmentations: nnU-Net writes the probabilities as .npz beside the segmentation of the same name."""
    probabilities = {path.with_suffix("") for path in files if path.name.endswith(".npz")}
    if not probabilities:
        return files
    return [path for path in files if path.suffix == ".npz" or path.with_name(scan_name(path)) not in probabilities]


def _in_dataset(folder: Path, root: Path) -> bool:
    """Whether a folder, or one above it, is said to be a BIDS dataset."""
    absolute, above = folder.absolute(), root.absolute()
    while True:
        if _is_described(absolute):
            return True
        if absolute in (above, absolute.parent):
            return root_of([above]) != above and _is_described(root_of([above]))
        absolute = absolute.parent


def _is_described(folder: Path) -> bool:
    return _is_described_elsewhere(folder) if isinstance(folder, RemotePath) else (folder / _DESCRIPTION).is_file()


@lru_cache(maxsize=4096)
def _is_described_elsewhere(folder: RemotePath) -> bool:
    """As above, asked once for all files of a folder."""
    return (folder / _DESCRIPTION).is_file()


def without_results(files: Sequence[Path], root: Path) -> list[Path]:
    """Files in a folder, but for those that a count wrote into it, or into a folder in it.

    Maps that `lesioncount predict` wrote are there to be counted: such a folder has no ``run.json``.
    """
    folders = {file.parent for file in files}
    above = {parent for folder in folders for parent in (folder, *folder.parents)}
    parents = [parent for parent in above if parent == root or root in parent.parents]
    counted = [parent for parent in parents if (parent / "run.json").is_file()]
    # Of a zarr store, which is found as a whole, each file is a result.
    names = ((parent, name, name.partition("/")[0]) for parent in counted for name in _ours_in(parent))
    ours = {parent / (store if store.endswith(".zarr") else name) for parent, name, store in names}
    return [file for file in files if file not in ours] if ours else list(files)


def _ours_in(folder: Path) -> Iterable[str]:
    """What a count wrote; of results that were copied to a bucket, what they list."""
    return listed_in(folder / "run.json") if isinstance(folder, RemotePath) else OutputFolder(folder).names()


def is_below(parent: Path, folder: Path) -> bool:
    """Whether a folder is another one, or lies below it."""
    if isinstance(parent, RemotePath):
        return False
    parent = parent.resolve()
    return folder.resolve() in (parent, *parent.parents)


def maps_in(folder: Path) -> list[Path]:
    """All files in a folder that may be maps, but for hidden ones."""
    if isinstance(folder, RemotePath):
        from lesioncount.files.remote_listing import walk

        return [path for path in walk(folder) if scan_name(path) != path.name or map_ending(path) is not None]
    return files_in(folder, _may_be_map)


def _may_be_map(path: Path, is_folder: bool) -> bool:
    return (folder_ending(path) == ".zarr") if is_folder else (file_ending(path) is not None)


def _without_pictures(found: list[Path]) -> list[Path]:
    """Without PNG beside maps of other kinds: those are previews of them."""
    maps = [path for path in found if not path.name.lower().endswith(".png") or map_ending(path) != ".png"]
    return maps or found


def files_in(folder: Path, is_wanted: Callable[[Path, bool], bool]) -> list[Path]:
    """What is wanted below a folder: files, and folders as a whole; nothing hidden. Links to folders are not followed.

    Parameters
    ----------
    folder : Path
    is_wanted : callable
        Given a path, and whether it is a folder.
    """
    # Sorted as paths are: of very many, tuples are compared in half the time.
    return sorted(_files_in(folder, is_wanted), key=lambda path: path.parts)


def _files_in(folder: Path, is_wanted: Callable[[Path, bool], bool]) -> Iterator[Path]:
    with suppress(PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = Path(entry.path)
            # A link may lead in a circle, which pathlib takes for no folder.
            is_folder = path.is_dir() if entry.is_symlink() else entry.is_dir()
            if is_wanted(path, is_folder):
                yield path
            elif is_folder and not entry.is_symlink():
                yield from _files_in(path, is_wanted)
