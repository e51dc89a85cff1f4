"""Cost of counting very many small scans: time, memory, --resume, the report, and how they grow with their number.

``python benchmarks/many_scans.py 12500 25000 50000 100000``: all of it, of maps with 32³ voxels, by two processes.

``python benchmarks/many_scans.py 2000 --lesions 100``: with more candidates. ``--no-report`` leaves out the report,
which takes longest. Everything is made in a temporary folder (``TMPDIR``) and removed. The machine should have nothing
else to do; where it has, CPU seconds are the steadier figure. The first screen of the report needs a chromium.
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

# Runs a command and prints what it and all its processes took: seconds, CPU seconds, the megabytes of the largest
# process, and those of all together, where pages that several share count once.
_MEASURED = """
import json, resource, subprocess, sys, threading, time
from pathlib import Path

def below(pid):
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield int(child)
            yield from below(int(child))

def kilobytes(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("Pss:")))
    except (OSError, StopIteration):
        return 0

most = 0
def watch():
    global most
    while running.poll() is None:
        try:
            most = max(most, sum(map(kilobytes, [running.pid, *below(running.pid)])))
        except OSError:  # one of them has just ended
            pass
        time.sleep(0.5)

began = time.monotonic()
running = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
watcher = threading.Thread(target=watch)
watcher.start()
code = running.wait()
seconds = time.monotonic() - began
watcher.join()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, most / 1000]))
sys.exit(code)
"""

# Opens a page and prints the milliseconds to its first screen, with the rows of the table in it, and to all rows.
_OPENED = """
import sys, time
from playwright.sync_api import sync_playwright
sys.path.insert(0, sys.argv[2])
import chromium
program = chromium.find() or sys.exit("there is no chromium here")
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=program, args=chromium.FLAGS)
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(600_000)
    began = time.monotonic()
    page.goto(sys.argv[1], wait_until="commit")
    page.wait_for_selector("#scans tbody tr", state="attached")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    first = time.monotonic() - began
    page.wait_for_selector(f"#found:has-text('{sys.argv[3]}')", state="attached")  # the page lets nobody evaluate text
    print(first, time.monotonic() - began)
    browser.close()
"""


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds, CPU seconds, megabytes of its largest process and of all together."""

    seconds: float
    cpu_seconds: float
    megabytes: float
    megabytes_of_all: float


def cost_of(*arguments: str | Path | int) -> Cost:
    """Run a command of ours, and measure it."""
    ours = [sys.executable, "-m", "lesioncount", *map(str, arguments)]
    command = [sys.executable, "-c", _MEASURED, *ours]
    return Cost(*json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


def first_screen(page: Path, n: int) -> str:
    """How long a browser takes for the first screen of the report, and for all its rows."""
    size = f"page of {page.stat().st_size / 1e6:.1f} MB"
    tests = Path(__file__).parent.parent / "tests"
    command = [sys.executable, "-c", _OPENED, page.as_uri(), str(tests), f"{n} of {n}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return f"{size}; first screen not measured: {(done.stderr.strip() or 'nothing said').splitlines()[-1]}"
    first, everything = map(float, done.stdout.split())
    return f"{size}; first screen after {first:.2f} s, all {n} rows after {everything:.1f} s"


def measured(folder: Path, n: int, *, lesions: int, jobs: int, parquet: bool, report: bool) -> dict[str, Cost]:
    """What each step takes on so many scans."""
    maps, out, truth = folder / f"maps{n}", folder / f"out{n}", folder / f"truth{n}.tsv"
    make_maps(maps, n, lesions=lesions)
    options = ("--jobs", jobs, "--quiet", *(("--write=parquet",) if parquet else ()))
    costs = {"count": cost_of("count", maps, "-o", out, *options)}
    costs["resume"] = cost_of("count", maps, "-o", out, "--resume", *options)
    write_truth(out / "counts.tsv", truth)
    ours = ("--truth-counts", truth, "--quiet")
    costs["evaluate"] = cost_of("evaluate", out, *ours, "--counts-only", "-o", folder / f"evaluation{n}")
    if report:
        costs["report"] = cost_of("count", maps, "-o", out, "--resume", "--report", *options)
        print(f"{n:>7} scans  {first_screen(out / 'report.html', n)}", flush=True)
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
            f"{each:6.2f} CPU ms/scan  {cost.megabytes:5.0f} MB, all processes {cost.megabytes_of_all:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scans", type=int, nargs="+", help="numbers of scans, each measured by itself")
    parser.add_argument("--lesions", type=int, default=5, help="candidates of a scan (default: 5)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--parquet", action="store_true")
    parser.add_argument("--no-report", action="store_true")
    options = parser.parse_args()
    how = {"lesions": options.lesions, "jobs": options.jobs, "parquet": options.parquet}
    everything: dict[int, dict[str, Cost]] = {}
    for n in options.scans:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            everything[n] = measured(Path(folder), n, **how, report=not options.no_report)
            show(n, everything[n])
            print(f"{'':>7}        all together {time.monotonic() - began:.0f} s", flush=True)
    if len(options.scans) > 1:
        for step in next(iter(everything.values())):
            cpu = [everything[n][step].cpu_seconds for n in options.scans]
            slope = np.polyfit(np.log(options.scans), np.log(cpu), 1)[0]
            print(f"log-log slope of CPU seconds with scans, {step}: {slope:.2f}")


if __name__ == "__main__":
    main()
