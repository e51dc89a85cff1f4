"""``lesioncount protocols``: the named definitions of "one lesion"."""

from __future__ import annotations

import argparse

from lesioncount.protocol import PROTOCOLS


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add no options: there are none."""


def run(_: argparse.Namespace) -> int:
    """Print the presets."""
    for name, preset in PROTOCOLS.items():
        print(f"{name}\n    {preset.description}\n    {preset.protocol}\n    {preset.protocol.to_json()}")
    return 0
