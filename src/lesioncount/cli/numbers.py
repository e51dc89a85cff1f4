"""Types for numbers on the command line, with messages that argparse prints."""

from __future__ import annotations

import argparse


def at_least_one(text: str) -> int:
    """A number of processes."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def at_least_zero(text: str) -> int:
    """A seed."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return int(text)
