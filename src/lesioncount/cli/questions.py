"""``lesioncount questions``: the criteria that can be asked for by name."""

from __future__ import annotations

import argparse

from lesioncount.questions import QUESTIONS


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add no options: there are none."""


def run(_: argparse.Namespace) -> int:
    """Print them."""
    for name, question in QUESTIONS.items():
        print(f"{name}\n    {question.description}\n    {question.text}\n    {question.source}")
    print("For research; none of them is a diagnosis. Ask with: lesioncount count MAPS -o out/ --regions … --ask NAME")
    return 0
