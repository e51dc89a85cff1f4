"""The command line: ``lesioncount count``, ``inspect`` and the others. Each parses, calls one function and prints."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from lesioncount.cli.streams import forgiving_streams
from lesioncount.errors import LesionCountError

_COMMANDS = {
    "count": "count the lesions in probability maps",
    "compare": "count new, gone and persisting lesions between scans of the same patients",
    "evaluate": "compare counts with the truth",
    "calibrate": "learn from scans with known truth how to correct counts",
    "summarize": "compare groups of patients, such as the arms of a trial",
    "review": "look at candidates in the browser and decide which are lesions",
    "train": "train a network to segment and count",
    "predict": "make probability maps with a trained network",
    "reproduce": "run the experiments of the paper and report which of its claims hold",
    "inspect": "show what is in a file and whether it can be counted",
    "info": "show versions and the machine, for reports of bugs",
    "protocols": 'list the named definitions of "one lesion"',
    "questions": "list the criteria that can be asked for by name",
    "synthesize": "make a cohort of synthetic scans",
    "nnunet-env": "print the line that lets nnU-Net find the trainer with a count loss",
}

# Those of the package lesioncount-reproduction: looked up only when one is called, because that takes time.
_OF_REPRODUCTION = ("reproduce", "synthesize")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    The exit code is 0 if all went well, 1 if some scans failed, 2 if nothing could be done, 130 if interrupted.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    with forgiving_streams():
        if arguments and arguments[0] in _OF_REPRODUCTION and _module_of(arguments[0]) is None:
            print(_NOT_INSTALLED.format(arguments[0]), file=sys.stderr)
            return 2
        parser, commands = _parser(arguments)
        if arguments and not arguments[0].startswith("-") and arguments[0] not in commands:
            parser.error(no_such_command(_shown(arguments[0]), commands))
        options, unknown = parser.parse_known_args(arguments)
        if options.command is None:
            parser.print_help()
            return 2
        if unknown:
            commands[options.command].error(no_such_arguments([*map(_shown, unknown)], commands[options.command]))
        options.typed = shlex.join(["lesioncount", *map(_shown, arguments)])
        if options.verbose:
            _tell_versions(options.typed)
        return _run(options)


_NOT_INSTALLED = (
    "lesioncount: the command {} comes with the package lesioncount-reproduction, which is not installed. In a clone "
    "of the repository: pip install ./reproduction"
)


def _module_of(command: str) -> Any:
    """The module of a command; None if it belongs to a package that is not installed."""
    if command not in _OF_REPRODUCTION:
        return import_module(f"lesioncount.cli.{command.replace('-', '_')}")
    from importlib.metadata import entry_points

    return next((found.load() for found in entry_points(group="lesioncount.commands", name=command)), None)


class _Parser(argparse.ArgumentParser):
    """A parser whose messages repeat no secret of an address; those of the commands are of the same class.

    Attributes
    ----------
    first : tuple of str
        Options that ``--help`` shows, if not all; ``--help-all`` shows them all.
    """

    first: tuple[str, ...] = ()

    def print_help(self, file: Any = None) -> None:
        """Print what ``--help`` shows."""
        hidden = {one: one.help for one in self._actions if self.first and not self._is_first(one)}
        more = f"{len(hidden)} more options: lesioncount {self.prog.split()[-1]} --help-all. {self.epilog}"
        epilog, self.epilog = self.epilog, more if hidden else self.epilog
        usage = self.usage
        if hidden:  # argparse cannot write the usage of groups that are hidden
            places = [str(one.metavar or one.dest) for one in self._actions if not one.option_strings]
            self.usage = " ".join(["%(prog)s", *places, "[options]"])
        for one in hidden:
            one.help = argparse.SUPPRESS
        super().print_help(file)
        self.epilog, self.usage = epilog, usage
        for one, meaning in hidden.items():
            one.help = meaning

    def _is_first(self, action: argparse.Action) -> bool:
        return not action.option_strings or action.dest in (*self.first, "help", "help_all")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end; without a list of all options, which would push it off the screen."""
        self.exit(2, f"{self.prog}: error: {_shown(message)}\nFor help: {self.prog} --help\n")


class _HelpAll(argparse.Action):
    """Shows all options, and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **more)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print and exit."""
        print(parser.format_help(), end="")
        parser.exit()


def _shown(text: str) -> str:
    """What was typed, as it may be printed."""
    if "://" not in text:
        return text
    from lesioncount.files.remote_path import without_secrets

    return without_secrets(text)


def _run(options: argparse.Namespace) -> int:
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        print("lesioncount: interrupted", file=sys.stderr)
        return 130
    except (LesionCountError, OSError, MemoryError) as error:
        if options.verbose:
            traceback.print_exc()
        print(f"lesioncount: {str(error) or 'out of memory'}", file=sys.stderr)
        return 2
    return code


def _tell_versions(typed: str) -> None:
    from importlib.metadata import version

    from lesioncount.version import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    print(f"lesioncount {__version__}, Python {python}, numpy {version('numpy')}", file=sys.stderr)
    print(f"$ {typed}", file=sys.stderr)


def _parser(arguments: Sequence[str]) -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of all commands, and those of each."""
    from lesioncount.version import __version__

    parser = _Parser(
        prog="lesioncount",
        description="How many lesions does a probability map show, and how sure can we be?",
        epilog="For more: lesioncount COMMAND --help. Example: lesioncount count probs/*.nii.gz -o out/",
    )
    parser.add_argument("-V", "--version", action="version", version=f"lesioncount {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
        # Only the command that is called is imported: the others would cost start-up time.
        if name in arguments:
            module = _module_of(name)
            if module is not None:
                module.add_arguments(command)
                command.set_defaults(run=module.run)
                command.first = getattr(module, "FIRST", ())
                if command.first:
                    command.add_argument("--help-all", action=_HelpAll, help="show all options and exit")
        command.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            help="say more: versions, every scan, and where an error came from",
        )
    return parser, commands.choices


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
