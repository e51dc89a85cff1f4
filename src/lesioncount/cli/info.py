"""``lesioncount info``: versions and the machine, for reports of bugs."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.set_defaults(run=run)
    parser.epilog = "It shows no path and no name of a user or machine. Exit code: 1 if the compiled parts count wrong."
    parser.add_argument("--json", action="store_true", help="print JSON, for programs and bug reports")


def run(options: argparse.Namespace) -> int:
    """Print what is installed; exit code 1 when the kernels do not work."""
    import json

    from lesioncount.cli.installation import installation

    here = installation()
    print(json.dumps(here.to_dict(), indent=2) if options.json else here)
    return 0 if here.kernels_work else 1
