"""The same few patients for both kinds of runs: their last scans to count, or all their scans to compare."""

from two_visits import VISITS, write_visits

from lesioncount.cli import main

KINDS = ("count", "compare")
NAMES = tuple(VISITS)


def run(*arguments):
    """The command, as it is typed; its exit code."""
    return main([str(argument) for argument in arguments])


def inputs_of(kind, folder):
    """What a run of this kind is given of the maps in a folder."""
    return [folder / "after"] if kind == "count" else [folder / "before", folder / "after"]


def made(kind, folder):
    """Maps of the patients in a folder, and the results of a run beside them."""
    write_visits(folder)
    out = folder / "out"
    assert run(kind, *inputs_of(kind, folder), "-o", out, "--quiet") == 0
    return out
