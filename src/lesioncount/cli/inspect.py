"""``lesioncount inspect``: what is in a file, and whether it can be counted."""

from __future__ import annotations

import argparse

from lesioncount.cli.map_arguments import LEVEL, READING
from lesioncount.cli.options import add_options, given
from lesioncount.protocol import PROTOCOLS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = (
        "Exit code: 0 if the file can be counted, 1 if it cannot be counted as it is, 2 if it cannot be read."
    )
    parser.add_argument("file", help="a probability map: a file, or its address")
    add_options(parser, READING | {"--level N": LEVEL})
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default="paper",
        help="what counts as one candidate: a named protocol (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the findings; exit code 1 when the file cannot be counted as it is."""
    from lesioncount.runs.inspection import inspect_map

    findings = inspect_map(options.file, **given(options, "channel", "scale", "logits", "level", "protocol"))
    print(findings)
    return 0 if findings.usable else 1
