"""Modules of version 0.1 that live elsewhere now: what was documented there is still found, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Where names are searched now. The first two are public names of the package, and stay: no warning.
_STAY = {"scores": ("trust.scores",), "fitting": ("trust.fitting",)}
_MOVED = {
    "batch": ("runs",),
    "cohorts": ("paper.synthetic", "paper.leaves", "learning.cohort", "learning.folder", "learning.cohort_files"),
    "evaluation": ("runs.evaluation",),
    "io": ("files", "runs"),
    "models": ("learning.networks",),
}


class MovedModules(MetaPathFinder, Loader):
    """Finds ``lesioncount.io`` and its like, as modules that know where each of their names is now."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module that was there in version 0.1."""
        package, _, name = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == "lesioncount" and name in (_STAY | _MOVED) else None

    def exec_module(self, module: ModuleType) -> None:
        """Let the module look its names up when they are asked for."""

        def look_up(name: str) -> Any:
            return _found(module.__name__, name)

        vars(module)["__getattr__"] = look_up


def _found(module: str, name: str) -> Any:
    short = module.partition(".")[2]
    for place in (_STAY | _MOVED)[short]:
        there = import_module(f"lesioncount.{place}")
        if hasattr(there, name) and not name.startswith("__"):
            if short in _MOVED:
                warnings.warn(f"{module}.{name} is lesioncount.{place}.{name} now.", DeprecationWarning, stacklevel=3)
            return getattr(there, name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
