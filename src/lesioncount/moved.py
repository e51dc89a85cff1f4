"""Modules of version 0.1 that live elsewhere now: what was documented there is still found, with a warning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from lesioncount.deprecation import warn_deprecated

# Public names of the package, which stay: the same modules, and those in them, by a shorter name.
_STAY = {"lesioncount.fitting": "lesioncount.trust.fitting", "lesioncount.scores": "lesioncount.trust.scores"}

# What the other modules offered, and where it is now.
_MOVED: dict[str, dict[str, tuple[str, ...]]] = {
    "lesioncount.batch": {"lesioncount.runs": ("count_batch",)},
    "lesioncount.cohorts": {
        "lesioncount.learning.cohort": ("SEQUENCES", "SPLITS", "Cohort", "Scan", "z_scored"),
        "lesioncount.learning.cohort_files": ("write_cohort",),
        "lesioncount.learning.folder": ("FolderCohort", "read_cohort"),
        "lesioncount_reproduction.leaves": ("Leaf", "LeafCohort", "read_leaves"),
        "lesioncount_reproduction.synthetic": ("GadCohort",),
    },
    "lesioncount.evaluation": {"lesioncount.runs.evaluation": ("evaluate", "known_truth")},
    "lesioncount.io": {
        "lesioncount.files": ("MapSource", "open_map"),
        "lesioncount.runs": ("ScanCount", "count_file"),
    },
    "lesioncount.models": {
        "lesioncount.learning.networks": (
            "METHODS",
            "ConvolutionalHead",
            "CountingNetwork",
            "CountingOutput",
            "MapHead",
            "NetworkOptions",
            "UNet",
            "UNetOutput",
            "counting_network",
        ),
    },
}


# What has another name there.
_RENAMED = {"lesioncount.cohorts.Scan": "Visit"}


class MovedModules:
    """Finds ``lesioncount.io`` and its like. The base classes in `importlib.abc` would cost a tenth of the start-up."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module that was there in version 0.1."""
        if fullname not in _MOVED and not _new_name(fullname):
            return None
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]  # a loader in all but its base class

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave it to Python to make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the module look its names up when they are asked for, or put the one with the new name in its place."""
        name = module.__name__
        if name in _MOVED:
            vars(module).update(_looking_up(name, _MOVED[name]))
        else:
            sys.modules[name] = import_module(_new_name(name))


def _new_name(name: str) -> str:
    """The name of a module that stays, or of one in it, as it is now; empty for any other."""
    for old, new in _STAY.items():
        if f"{name}.".startswith(f"{old}."):
            return new + name.removeprefix(old)
    return ""


def _looking_up(module: str, places: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """What is in a module whose names are elsewhere."""
    homes = {name: place for place, names in places.items() for name in names}

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = homes[name]
        new = _RENAMED.get(f"{module}.{name}", name)
        warn_deprecated(f"{module}.{name}", f"{home}.{new}")
        return getattr(import_module(home), new)

    doc = f"Moved to {', '.join(places)}."
    return {"__doc__": doc, "__all__": sorted(homes), "__getattr__": look_up, "__dir__": lambda: sorted(homes)}
