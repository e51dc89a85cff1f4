"""The command line: ``lesioncount count``, ``inspect``, ``protocols``. It parses, calls one function, and prints."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

_COMMANDS = {
    "count": "count the lesions of maps in files",
    "inspect": "say what is in a file, and whether it can be counted",
    "protocols": 'list the named definitions of "one lesion"',
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 when all went well, 1 when some scans failed, 2 when nothing could be done."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(arguments)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    from lesioncount.errors import LesionCountError

    try:
        code: int = options.run(options)
    except LesionCountError as error:
        if getattr(options, "debug", False):
            raise
        print(f"lesioncount: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0
    return code


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    from lesioncount.version import __version__

    parser = argparse.ArgumentParser(
        prog="lesioncount",
        description="How many lesions does a probability map show, and how sure can we be?",
        epilog="lesioncount COMMAND --help tells more. Example: lesioncount count probs/*.nii.gz -o out/",
    )
    parser.add_argument("--version", action="version", version=f"lesioncount {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
        # Only the command that is called is imported: the others would cost start-up time.
        if name in arguments:
            import_module(f"lesioncount.cli.{name}").add_arguments(command)
    return parser
