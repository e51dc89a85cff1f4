"""Options about maps that several commands have: what counts as one lesion, what is in the files, whose they are."""

from __future__ import annotations

import argparse
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

from lesioncount.errors import ProtocolError, reason_of
from lesioncount.protocol import PROTOCOLS, CountingProtocol

# What options say that are for names that differ in their ends.
SUFFIX = "what the name of {} adds to that of its map, or has in place of its last part, such as {}"

LEVEL = "which resolution of OME-Zarr images, where 0 is the finest (default: 0)"

# More digits than any number has that is meant.
_LONGEST_NUMBER = 100


def add_definition(parser: argparse.ArgumentParser) -> None:
    """Add what says what counts as one lesion, and where."""
    protocol = parser.add_argument_group("what counts as one lesion")
    names = ", ".join(PROTOCOLS)
    protocol.add_argument(
        "--protocol",
        default="paper",
        metavar="NAME|FILE",
        help=f"a named protocol ({names}) or a JSON file (default: paper)",
    )
    protocol.add_argument(
        "--threshold", type=float, metavar="T", help="keep voxels with a probability above T (default: 0.1)"
    )
    protocol.add_argument(
        "--connectivity",
        metavar="C",
        help="which voxels touch: 6, 18, 26, 4, 8, faces, edges or corners (default: edges)",
    )
    protocol.add_argument("--min-voxels", type=int, metavar="N", help="drop candidates with fewer than N voxels")
    protocol.add_argument(
        "--min-volume-mm3", type=float, metavar="V", help="drop candidates smaller than V cubic millimetres"
    )
    protocol.add_argument(
        "--min-diameter-mm", type=float, metavar="D", help="drop candidates smaller than a ball of diameter D"
    )
    protocol.add_argument(
        "--min-length-mm", type=float, metavar="L", help="drop candidates shorter than L along every axis"
    )
    protocol.add_argument(
        "--candidates",
        choices=("regions", "peaks"),
        help="count each region above the threshold, or each peak in it, which keeps lesions apart that touch "
        "(default: regions)",
    )
    protocol.add_argument(
        "--min-persistence",
        type=float,
        metavar="P",
        help="join peaks that stand out by less than P with others",
    )
    protocol.add_argument(
        "--mask",
        type=named_path,
        metavar="FILE|FOLDER|PATTERN",
        help="count only inside this mask; in a folder, the mask of the same name or BIDS entities as the map; a "
        "pattern is such as 'masks/{participant}_{session}.nii.gz'",
    )
    protocol.add_argument("--mask-suffix", default="", metavar="TEXT", help=SUFFIX.format("a mask", "_brain"))


def add_reading(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what says how the voxels of files are read."""
    maps = parser.add_argument_group("what is in the maps")
    maps.add_argument(
        "--channel",
        type=int,
        metavar="N",
        help="which channel to count in files with several, starting at 0 (nnU-Net: 1 is the first label)",
    )
    maps.add_argument("--logits", action="store_true", help="the maps contain logits, not probabilities")
    maps.add_argument(
        "--scale",
        type=_scale,
        metavar="S",
        help="multiply stored values by S to get probabilities: 1/255 for bytes, 0.01 for percent",
    )
    return maps


def add_whose(parser: argparse.ArgumentParser) -> None:
    """Add what says which files are maps, and whose."""
    whose = parser.add_argument_group("whose scans they are")
    whose.add_argument(
        "--suffix",
        metavar="TEXT",
        help="in folders, count only maps whose names end like this, such as _prob (default: in BIDS datasets "
        "_probseg, elsewhere all)",
    )
    whose.add_argument(
        "--name-pattern",
        metavar="PATTERN",
        help="a regular expression with groups (?P<participant>…) and (?P<session>…), searched for in the path of a "
        "map below the folder (default: sub-… and ses-… of BIDS names and folders)",
    )
    whose.add_argument(
        "--root",
        type=named_path,
        metavar="FOLDER",
        help="names of scans are paths below this folder (default: the folder given, or the innermost one that holds "
        "all inputs)",
    )


def protocol_of(options: argparse.Namespace) -> CountingProtocol:
    """The protocol that options name, with the fields that they change."""
    given: str = options.protocol
    if given not in PROTOCOLS and (given.endswith(".json") or "/" in given):
        try:
            base = CountingProtocol.from_json(Path(given).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ProtocolError(f"The protocol {given} cannot be read: {reason_of(error)}.") from None
    else:
        base = CountingProtocol.named(given)
    names = [field.name for field in fields(CountingProtocol)]
    changes: dict[str, Any] = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if str(changes.get("connectivity", "")).isdecimal():
        changes["connectivity"] = int(changes["connectivity"])
    return CountingProtocol.from_dict(base.to_dict() | changes)


def _scale(text: str) -> float:
    from fractions import Fraction

    try:
        # A decimal with a large exponent is not for Fraction, which would write out all its digits.
        scale = float(Fraction(text[:_LONGEST_NUMBER]) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        scale = math.nan
    if not math.isfinite(scale) or len(text) > _LONGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number such as 0.01 or 1/255")
    return scale


# More processes than any machine has cores for; a typing error rather than a wish.
_MOST_PROCESSES = 1024

# Of seeds: as many digits as a number of 64 bits has.
_LONGEST = 18


def at_least_one(text: str) -> int:
    """A number of processes, patients or seeds."""
    number = _whole(text, "at least 1")
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return number


def processes(text: str) -> int:
    """A number of processes."""
    number = at_least_one(text)
    if number > _MOST_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text} processes are too many: ask for at most {_MOST_PROCESSES}")
    return number


def at_least_zero(text: str) -> int:
    """A seed."""
    return _whole(text, "at least 0")


def named_path(text: str) -> Path:
    """A path that has a name: an empty one, as of a variable that is not set, would be the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty; for the current folder write .")
    if "\0" in text:
        raise argparse.ArgumentTypeError("a name cannot hold a null character")
    if "://" not in text:
        return Path(text)
    from lesioncount.errors import MapFileError
    from lesioncount.files.remote_path import to_path

    try:
        return to_path(text)
    except MapFileError as error:  # of an address with a password, which it does not repeat
        raise argparse.ArgumentTypeError(str(error)) from None


def _whole(text: str, kind: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > _LONGEST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number of {kind}")
    return int(text)


def add_run(parser: argparse.ArgumentParser, verb: str, *, workers: str) -> argparse._ArgumentGroup:
    """Add how a run is done, and what it does with an earlier one in its folder."""
    work = parser.add_argument_group("the run")
    work.add_argument("-j", "--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")
    work.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on a Dask cluster; the address of its scheduler, such as tcp://host:8786. Its workers "
        f"{verb} {workers}",
    )
    again = work.add_mutually_exclusive_group()
    again.add_argument(
        "--resume",
        action="store_true",
        help=f"continue an earlier run with the same settings: keep results that are still valid, {verb} the rest",
    )
    again.add_argument("--overwrite", action="store_true", help=f"{verb} everything again and replace earlier results")
    work.add_argument(
        "--parquet", action="store_true", help="also write each table as Parquet, beside it, for millions of rows"
    )
    return work
