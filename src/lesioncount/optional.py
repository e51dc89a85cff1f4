"""Packages that only some users need: imported here, with a message that names the extra."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from lesioncount.errors import MissingExtraError


def how_to_install(extra: str) -> str:
    """What to type for an extra, as the end of a sentence."""
    return f"pip install '.[{extra}]' in the clone of lesioncount"


def optional(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module of an optional package."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package}, which is not installed: {how_to_install(extra)}."
        ) from error
