"""The words that options are made of: values that are checked, and options that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# More processes than any machine has cores for; a typing error rather than a wish.
_MOST_PROCESSES = 1024

# Of seeds: as many digits as a number of 64 bits has.
_LONGEST = 18

# What options say that are for names that differ in their ends.
SUFFIX = "what the name of {} adds to that of its map, or has in place of its last part, such as {}"

# What stands for a path in help.
_PATHS = ("FILE", "FOLDER", "TABLE")

# A parser, or a group of its options.
Options = argparse._ActionsContainer  # noqa: SLF001 - argparse has no public name for both

# What an option means, and if needed what else argparse is told of it.
Option = str | tuple[str, Mapping[str, Any]]

REPEATED: Mapping[str, Any] = {"action": "append", "default": []}
NUMBER: Mapping[str, Any] = {"type": float}


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


def add_options(to: Options, options: Mapping[str, Option]) -> None:
    """Add options by what help says of them: ``{"--mask-suffix TEXT": "what the name of a mask adds …"}``.

    An option without a value is a flag. FILE, FOLDER and TABLE stand for paths, N for a whole number, ``{a,b}`` for one
    of these words, and anything else for a text, unless the meaning comes with other arguments of argparse.
    """
    for written, said in options.items():
        name, _, value = written.partition(" ")
        meaning, more = (said, {}) if isinstance(said, str) else said
        to.add_argument(name, help=meaning, **{**_of_value(value), **more})


def add_group(parser: argparse.ArgumentParser, title: str, options: Mapping[str, Option]) -> Options:
    """Add options under a title of their own."""
    group = parser.add_argument_group(title)
    add_options(group, options)
    return group


def _of_value(value: str) -> dict[str, Any]:
    if not value:
        return {"action": "store_true"}
    if value.startswith("{"):
        return {"choices": tuple(value.strip("{}").split(","))}
    kind = named_path if value.partition("|")[0] in _PATHS else int if value == "N" else None
    return {"metavar": value, "type": kind}


def add_paths(to: Options, name: str, meaning: str, **more: Any) -> None:
    """Add an argument that is a path."""
    to.add_argument(name, type=named_path, metavar=name.upper(), help=meaning, **more)


def add_output(to: Options, metavar: str, meaning: str, *, required: bool = True) -> None:
    """Add where to write."""
    to.add_argument("-o", "--output", required=required, type=named_path, metavar=metavar, help=meaning)


def add_jobs(to: Options) -> None:
    """Add the number of processes."""
    to.add_argument("-j", "--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")


def add_quiet(to: Options) -> None:
    """Add that little is printed; that much is, all commands have."""
    add_options(to, {"--quiet": "print errors only"})


def add_rerun(to: Options, *, seed_of: str, overwrite: str, jobs: bool = False) -> None:
    """Add what decides whether another run gives the same, and may replace the first: the last options of a command."""
    if jobs:
        add_jobs(to)
    seed: Option = (f"seed of {seed_of} (default: 0)", {"type": at_least_zero, "default": 0})
    add_options(to, {"--seed N": seed, "--overwrite": overwrite})
    add_quiet(to)


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """What was given for these options, as arguments of a function that has them under the same names."""
    return {name: getattr(options, name) for name in names}
