"""Packages that only some users need: imported here, with a message that names the extra."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from lesioncount.errors import MissingExtraError


def optional(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module of an optional package."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the package {module.split('.', maxsplit=1)[0]}, which is not installed: "
            f"pip install 'lesioncount[{extra}]'."
        ) from error
