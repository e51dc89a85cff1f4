"""The compiled parts: the same on every machine, and open to every compiler."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lesioncount
from lesioncount._kernels.sweep import vectors

PACKAGE = Path(lesioncount.__file__).parent
KERNELS = PACKAGE / "_kernels"
HEADERS = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.h"))
LEVELS = ["baseline", "avx2", "avx512"]
# What is in no C standard: attributes, built-ins and intrinsics of compilers, and calls of one operating system.
FOREIGN = re.compile(r"__\w*|\b_mm\w*|_BitScan\w*|\bmadvise\b|\binline\s+asm\b")
COUNT = """
import numpy as np
from lesioncount import PoissonBinomial, count_lesions
from lesioncount._kernels.sweep import vectors
rng = np.random.default_rng(5)
counts = [vectors()]
for dtype in ("f2", "f4", "f8", "u1"):
    for shape in ((5, 70, 131), (9, 12, 40)):
        p = (rng.random(shape) ** 9).astype(dtype) if dtype != "u1" else (255 * rng.random(shape) ** 9).astype(dtype)
        for protocol in ("paper", "peaks"):
            found = count_lesions(p, protocol=protocol, scale=1 / 255 if dtype == "u1" else None)
            counts += [found.distribution.mean().hex(), len(found.candidates)]
        if dtype != "u1":
            counts.append(count_lesions(np.log(p + 0.001) + 3, logits=True).distribution.mean().hex())
counts += [value.hex() for value in PoissonBinomial(rng.random(700)).pmf(np.arange(701)).tolist()]
print(*counts)
"""


def counted_with(level):
    environment = {**os.environ, "LESIONCOUNT_VECTORS": level}
    done = subprocess.run([sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True)
    used, *counts = done.stdout.split()
    return used, counts


def test_every_width_of_vectors_counts_the_same_to_the_last_bit():
    widest = LEVELS.index(vectors())
    used, counts = zip(*map(counted_with, LEVELS), strict=True)
    assert list(used) == LEVELS[: widest + 1] + [LEVELS[widest]] * (2 - widest)  # none that the machine does not have
    assert counts[0] == counts[1] == counts[2]
    assert len(counts[0]) > 700


def test_an_unknown_width_of_vectors_is_as_none():
    assert counted_with("widest")[0] == counted_with("")[0]


def compiler(name):
    return shutil.which(name) or pytest.skip(f"needs {name}")


@pytest.mark.parametrize("macros", [[], ["-DLC_PLAIN_C"]], ids=["as it is", "plain"])
@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("header", HEADERS)
def test_headers_are_standard_c_without_warnings(header, name, macros, tmp_path):
    source = tmp_path / "all.c"
    source.write_text(f'#include "{PACKAGE / header}"\n')
    strict = ["-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    unused = ["-Wno-unused-function", "-Wno-unused-const-variable"]
    command = [compiler(name), *strict, *unused, *macros, f"-I{KERNELS}", "-fsyntax-only", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", HEADERS)
def test_without_extensions_of_compilers_nothing_of_them_is_left(header, tmp_path):
    for name in re.findall(r"#include <(.+)>", "".join((PACKAGE / one).read_text("utf-8") for one in HEADERS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()  # empty: only what is ours is looked at
    command = [compiler("gcc"), "-E", "-P", "-nostdinc", f"-I{tmp_path}", f"-I{KERNELS}"]
    plain, extended = (
        subprocess.run([*command, *macros, PACKAGE / header], capture_output=True, text=True, check=True).stdout
        for macros in (["-DLC_PLAIN_C"], [])
    )
    assert not FOREIGN.findall(plain)
    assert Path(header).name not in {"blocks.h", "widest.h"} or FOREIGN.search(extended)


def in_records(p):
    packed = np.zeros(p.shape, dtype=[("flag", "u1"), ("p", p.dtype)])
    packed["p"] = p
    return packed["p"]


def one_byte_off(p):
    return np.frombuffer(b"\0" + p.tobytes(), p.dtype, offset=1).reshape(p.shape)


@pytest.mark.parametrize("unaligned", [in_records, one_byte_off])
def test_maps_whose_voxels_are_not_aligned_are_counted(unaligned, rng):
    p = (rng.random((6, 70, 80)) ** 20).astype("<f4")
    assert not unaligned(p).flags.aligned
    found, expected = lesioncount.find_candidates(unaligned(p)), lesioncount.find_candidates(p)
    assert len(found) == len(expected) > 20
    np.testing.assert_array_equal(found.peak_probability, expected.peak_probability)
