"""The compiled parts; everything else about the package is in pyproject.toml."""

import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = ("slab", "sweep", "merge_tree", "cut", "small_peaks", "recursion", "log_recursion", "true_count")
# No contraction to fused multiply-add: results must not depend on the vectors a machine happens to have. No symbols for
# debuggers: they are four fifths of a wheel.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-g0", "-ffp-contract=off"]

setup(
    ext_modules=cythonize(
        [
            Extension(
                f"lesioncount._kernels.{name}",
                [f"src/lesioncount/_kernels/{name}.pyx"],
                include_dirs=["src/lesioncount/_kernels"],
                depends=[str(header) for header in Path("src/lesioncount/_kernels").glob("*.h")],
                extra_compile_args=FLAGS,
            )
            for name in KERNELS
        ],
        include_path=["src"],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
        },
    )
)
