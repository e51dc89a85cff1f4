"""Types of arguments, with messages that argparse prints."""

from __future__ import annotations

import argparse
from pathlib import Path

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
    return work
