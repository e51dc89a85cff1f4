"""Writes docs/reference/commands.md from the help of every command: ``python docs/building/commands.py``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from lesioncount import cli

PAGE = Path(__file__).resolve().parents[1] / "reference" / "commands.md"
INTRODUCTION = """# Every command

What `lesioncount COMMAND --help` prints (`--help-all`, where there is one), made from the same source.
[Files and the command line](../command-line.md)
explains what is read and written. Every command also takes `--help`, and `--verbose` to {verbose}.
"""
# What argparse calls the groups that have no title of ours: they are one table, below the call.
UNTITLED = {"positional arguments", "options"}


def page() -> str:
    """The page, with a part for each command."""
    _, commands = cli._parser(list(cli._COMMANDS))
    verbose = next(action.help for action in commands["count"]._actions if "--verbose" in action.option_strings)
    told: dict[str, str] = {}
    parts = [part for name, command in commands.items() for part in _command(name, command, told)]
    return "\n".join([INTRODUCTION.format(verbose=verbose), *parts])


def _command(name: str, parser: argparse.ArgumentParser, told: dict[str, str]) -> Iterator[str]:
    """The part of a command. ``told`` has each row so far with its command: none is printed twice."""
    positional = [_positional(action) for action in parser._actions if not action.option_strings]
    yield f"## {name}\n\n{parser.description}\n"
    yield f"```text\nlesioncount {' '.join([name, *positional, '[options]'])}\n```\n"
    groups: dict[str, dict[str, argparse.Action]] = {}
    for group in parser._action_groups:
        title = "" if group.title in UNTITLED else f"### {name}: {group.title}\n"
        rows = {_row(parser, action): action for action in group._group_actions if _is_told(action)}
        groups.setdefault(title, {}).update(rows)
    for title, rows in groups.items():
        if rows:
            yield from (title,) if title else ()
            yield from _group(name, rows, told)
    if parser.epilog:
        yield f"{_escaped(parser.epilog % {'prog': f'lesioncount {name}'})}\n"


def _group(name: str, rows: dict[str, argparse.Action], told: dict[str, str]) -> Iterator[str]:
    """A table of what is new, and a line of what means the same as in an earlier command."""
    same: dict[str, list[str]] = {}
    for row, action in rows.items():
        if row in told and action.option_strings:
            same.setdefault(told[row], []).append(f"`{action.option_strings[-1]}`")
    new = [row for row, action in rows.items() if row not in told or not action.option_strings]
    told.update((row, name) for row in new)
    if new:
        yield "| argument | meaning |\n|---|---|\n" + "\n".join(new) + "\n"
    for command, options in same.items():
        yield f"As for [{command}](#{command}): {', '.join(options)}.\n"


def _is_told(action: argparse.Action) -> bool:
    return action.help != argparse.SUPPRESS and not {"--help", "--help-all", "--verbose"} & set(action.option_strings)


def _positional(action: argparse.Action) -> str:
    name = _value(action)
    several = f"{name} …" if action.nargs in ("+", "*") else name
    return f"[{several}]" if action.nargs in ("*", "?") else several


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """An option with its value as code, and its help."""
    value = "" if action.nargs == 0 else f" {_value(action)}{' …' if action.nargs in ('+', '*') else ''}"
    spelled = ", ".join(f"`{option}`" for option in action.option_strings[:-1])
    last = f"`{action.option_strings[-1]}{value}`" if action.option_strings else f"`{_value(action)}`"
    given = f"{spelled}, {last}" if spelled else last
    told = parser._get_formatter()._expand_help(action) if action.help else ""
    return f"| {_in_cell(given)} | {_escaped(told)} |"


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _escaped(text: str) -> str:
    """Plain text as Markdown that shows it unchanged."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
