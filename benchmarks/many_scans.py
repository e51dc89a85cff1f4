"""Cost of counting very many small scans: time, memory, --resume, and how they grow with the number of scans.

python benchmarks/many_scans.py 1000 2000 5000 10000
python benchmarks/many_scans.py 2000 --lesions 100

Everything is made in a temporary folder (``TMPDIR``), some 10 kilobytes a scan, and removed. The machine should have
nothing else to do; where it has, CPU seconds are the steadier figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from many_maps import make_maps

# Runs a command and prints what it and all its processes took; the largest of them counts.
_MEASURED = """
import json, resource, subprocess, sys, time
began = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds, CPU seconds of all its processes, and megabytes of the largest of them."""

    seconds: float
    cpu_seconds: float
    megabytes: float


def cost_of(*arguments: str | Path) -> Cost:
    """Run a command of ours, and measure it."""
    ours = [sys.executable, "-m", "lesioncount", *map(str, arguments)]
    command = [sys.executable, "-c", _MEASURED, *ours]
    return Cost(*json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def measured(folder: Path, n: int, *, lesions: int, jobs: int, parquet: bool) -> dict[str, Cost]:
    """What each step takes on so many scans."""
    maps, out, truth = folder / f"maps{n}", folder / f"out{n}", folder / f"truth{n}.tsv"
    make_maps(maps, n, lesions=lesions)
    options = ("--jobs", jobs, "--quiet", *(("--parquet",) if parquet else ()))
    costs = {"count": cost_of("count", maps, "-o", out, *map(str, options))}
    costs["resume"] = cost_of("count", maps, "-o", out, "--resume", *map(str, options))
    write_truth(out / "counts.tsv", truth)
    ours = ("--truth-counts", truth, "--quiet")
    costs["evaluate"] = cost_of("evaluate", out, *ours, "--counts-only", "-o", folder / f"evaluation{n}")
    costs["calibrate"] = cost_of("calibrate", out, *ours, "-o", folder / f"calibration{n}.json")
    return costs


def write_truth(counts: Path, truth: Path) -> None:
    """Counts that are as likely as the maps say, drawn from a Poisson distribution around their means."""
    lines = [line.split("\t") for line in counts.read_text("utf-8").splitlines()]
    at = lines[0].index("count_mean")
    means = np.array([float(line[at]) for line in lines[1:]])
    drawn = np.random.default_rng(0).poisson(means)
    rows = [f"{line[0]}\t{count}" for line, count in zip(lines[1:], drawn, strict=True)]
    truth.write_text("\n".join(["scan\tcount", *rows, ""]), "utf-8")


def show(n: int, costs: dict[str, Cost]) -> None:
    """Print a line for each step."""
    for step, cost in costs.items():
        each = 1000 * cost.cpu_seconds / n
        print(
            f"{n:>7} scans  {step:<10} {cost.seconds:8.1f} s  {n / cost.seconds:8.0f} scans/s  "
            f"{each:6.2f} CPU ms/scan  {cost.megabytes:5.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scans", type=int, nargs="+", help="numbers of scans, each measured by itself")
    parser.add_argument("--lesions", type=int, default=5, help="candidates of a scan (default: 5)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--parquet", action="store_true")
    options = parser.parse_args()
    everything: dict[int, dict[str, Cost]] = {}
    for n in options.scans:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            everything[n] = measured(
                Path(folder), n, lesions=options.lesions, jobs=options.jobs, parquet=options.parquet
            )
            show(n, everything[n])
            print(f"{'':>7}        all together {time.monotonic() - began:.0f} s", flush=True)
    if len(options.scans) > 1:
        for step in next(iter(everything.values())):
            cpu = [everything[n][step].cpu_seconds for n in options.scans]
            slope = np.polyfit(np.log(options.scans), np.log(cpu), 1)[0]
            print(f"log-log slope of CPU seconds with scans, {step}: {slope:.2f}")


if __name__ == "__main__":
    main()
