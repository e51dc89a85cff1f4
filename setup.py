"""The compiled and bundled parts; everything else about the package is in pyproject.toml."""

import atexit
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

KERNELS = Path("src/lesioncount/_kernels")  # and Cython writes shared.c there
# No contraction to fused multiply-add: results must not depend on the vectors a machine happens to have. No symbols for
# debuggers: they are four fifths of a wheel.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-g0", "-ffp-contract=off"]
# What all kernels that take memoryviews need, in a module of its own: a copy in each would make a wheel 0.35 MB larger.
SHARED = "lesioncount._kernels.shared"
# One wheel for every Python from 3.11 on. Not where kernels are built in place: there, Python would prefer an older
# build that is for its version alone.
LIMITED_API = bool(os.environ.get("LESIONCOUNT_LIMITED_API"))


def bundle_viewer() -> None:
    """Put the viewer of `lesioncount review` beside its page; without npm, all else is built and this is said."""
    if os.environ.get("LESIONCOUNT_NO_NPM"):  # for those who build without a network
        return
    bundling = runpy.run_path("page/build.py")
    try:
        bundling["build"]()
    except bundling["CannotBundleError"] as error:
        print(f"lesioncount is built without the viewer of `lesioncount review`: {error}", file=sys.stderr)


def extension(source: Path) -> Extension:
    """A compiled module, from Cython or from C."""
    return Extension(
        ".".join(source.with_suffix("").parts[1:]),
        [str(source)],
        include_dirs=[str(KERNELS)],
        depends=[str(header) for header in Path("src").rglob("*.h")],
        extra_compile_args=FLAGS,
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED_API else [],
        py_limited_api=LIMITED_API,
    )


class BuildWithViewer(build_py):
    """Copy the modules, after the viewer is there to be copied."""

    def run(self) -> None:
        """Bundle, then copy."""
        bundle_viewer()
        super().run()


class SdistWithViewer(sdist):
    """Pack the sources with the built viewer: who installs from them needs no npm."""

    def run(self) -> None:
        """Bundle, then pack."""
        bundle_viewer()
        super().run()


# Not build/ in the tree, where a later wheel would find modules that were removed since.
BUILD = tempfile.mkdtemp(prefix="lesioncount-build-")
atexit.register(shutil.rmtree, BUILD, ignore_errors=True)

setup(
    options={"build": {"build_base": BUILD}} | ({"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {}),
    cmdclass={"build_py": BuildWithViewer, "sdist": SdistWithViewer},
    ext_modules=cythonize(
        [extension(source) for source in (*sorted(Path("src").rglob("*.pyx")), KERNELS / "shared.c")],
        shared_utility_qualified_name=SHARED,
        include_path=["src"],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
        },
    ),
)
