"""``lesioncount info``: versions and the machine, for reports of bugs."""

from __future__ import annotations

import argparse
import os
import platform
import re
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import numpy as np

from lesioncount._kernels.sweep import vectors
from lesioncount.counting import count_lesions
from lesioncount.version import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = "It shows no path and no name of a user or machine. Exit code: 1 if the compiled parts count wrong."
    parser.add_argument("--json", action="store_true", help="print JSON, for programs and bug reports")


def run(options: argparse.Namespace) -> int:
    """Print what is installed; exit code 1 when the kernels do not work."""
    import json

    here = installation()
    print(json.dumps(here.to_dict(), indent=2) if options.json else here)
    return 0 if here.kernels_work else 1


# A row with two peaks that touch and one that stands alone, and the distribution of their number.
_ROW = (0.0, 0.5, 0.25, 0.5, 0.0, 0.5, 0.0)
_DISTRIBUTION = (0.1875, 0.4375, 0.3125, 0.0625)


@dataclass(frozen=True)
class Package:
    """A package that we use.

    Attributes
    ----------
    name : str
    version : str or None
        None where it is not installed.
    extras : tuple of str
        Which of our extras bring it; none of them if it is always needed.
    """

    name: str
    version: str | None
    extras: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.version is not None:
            return self.version
        ways = " or ".join(f"lesioncount[{extra}]" for extra in self.extras)
        return f"missing ({ways})" if ways else "missing"


@dataclass(frozen=True)
class Installation:
    """What is installed. It has no path, no name of a user and no name of a machine, so that it can be shown to others.

    Attributes
    ----------
    lesioncount, python : str
        Versions.
    system, machine : str
        The operating system with its version, and the kind of processor.
    n_processors : int
    vectors : str
        The widest vectors that the kernels use here: "avx512", "avx2" or "baseline".
    kernels_work : bool
        Whether they count a small map right.
    packages : tuple of Package
        Those that are always needed first.
    """

    lesioncount: str
    python: str
    system: str
    machine: str
    n_processors: int
    vectors: str
    kernels_work: bool
    packages: tuple[Package, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = {
            "lesioncount": self.lesioncount,
            "python": self.python,
            "system": f"{self.system}, {self.machine}, processors: {self.n_processors}",
            "kernels": f"{'work' if self.kernels_work else 'COUNT WRONG: please report this'}, vectors: {self.vectors}",
        } | {one.name: str(one) for one in self.packages}
        width = max(map(len, lines))
        return "\n".join(f"{name:<{width}}  {text}" for name, text in lines.items())


def installation() -> Installation:
    """Look at what is installed.

    Examples
    --------
    >>> installation().kernels_work
    True
    """
    return Installation(
        lesioncount=__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        n_processors=os.cpu_count() or 1,
        vectors=vectors(),
        kernels_work=_kernels_work(),
        packages=_packages(),
    )


def _kernels_work() -> bool:
    count = count_lesions(np.array([_ROW], np.float32), protocol="peaks")
    return np.array_equal(count.distribution.pmf(np.arange(len(_DISTRIBUTION))), _DISTRIBUTION)


def _packages() -> tuple[Package, ...]:
    """What our own metadata names, each once; those of all users first."""
    extras: dict[str, list[str]] = {}
    for requirement in requires("lesioncount") or ():
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if name != "lesioncount":  # an extra that brings others
            extras.setdefault(name, []).extend([extra[1]] if extra else [])
    found = [Package(name, _version(name), tuple(of)) for name, of in extras.items()]
    return tuple(sorted(found, key=lambda package: (bool(package.extras), package.name.lower())))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
