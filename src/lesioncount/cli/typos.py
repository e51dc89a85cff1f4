"""What was typed but is not there → what may have been meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence

# Of a word in a message.
_LONGEST = 60


def no_such_command(given: str, known: Iterable[str]) -> str:
    """What to say of a command that does not exist."""
    names = list(known)
    return f"there is no command {given[:_LONGEST]!r}.{_meant(given, names)} Commands are {', '.join(names)}."


def no_such_arguments(unknown: Sequence[str], command: argparse.ArgumentParser) -> str:
    """What to say of arguments that a command does not take."""
    options = [text for text in unknown if text.startswith("-") and not _is_number(text)]
    if not options:
        return f"there is nothing that {' '.join(unknown)[:_LONGEST]!r} could be for."
    known = re.findall(r"(?<![\w-])--[\w-]+", command.format_help())
    first = options[0].partition("=")[0]
    return f"there is no option {first[:_LONGEST]}.{_meant(first, known)}"


def _meant(given: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(given[:_LONGEST], known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-\.?\d.*", text) is not None
