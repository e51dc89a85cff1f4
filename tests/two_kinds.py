"""``count`` and ``compare`` as one: small cohorts, the commands on them, and what they leave behind."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from nifti_files import save

from lesioncount.cli import main

SHAPE = (12, 14, 10)

# What tells when and how a run was done.
RUN_FILES = ("run.json", "runs.jsonl")


def blobs(rng, n, shape=SHAPE):
    """A map with some blobs that lie apart, each with a peak of its own."""
    p = np.zeros(shape, np.float32)
    for place in rng.permutation(8)[:n]:
        x, y, z = np.unravel_index(place, (2, 2, 2)) * np.array([6, 7, 5]) + 1
        p[x : x + 3, y : y + 3, z : z + 3] = rng.uniform(0.15, 0.6)
        p[x + 1, y + 1, z + 1] = rng.uniform(0.6, 0.95)
    return p


@dataclass(frozen=True)
class Kind:
    """A command that makes folders of results.

    Attributes
    ----------
    name : str
    times : tuple of str
        Folders that hold the maps of a patient.
    table, page : str
    labels : tuple of str
        Endings of the label maps of a patient.
    """

    name: str
    times: tuple[str, ...]
    table: str
    page: str
    labels: tuple[str, ...]

    def __str__(self):
        return self.name

    def cohort(self, folder, names, seed=0):
        """Write maps of patients; give the folder."""
        for number, name in enumerate(names):
            self.patient(folder, name, seed=1000 * seed + number)
        return folder

    def patient(self, folder, name, *, seed, n=4):
        """Write the maps of one patient."""
        rng = np.random.default_rng(seed)
        for time in self.times:
            save(folder / time / f"{name}.nii.gz", blobs(rng, n))

    def inputs(self, folder, name=None):
        """What the command takes: the maps of all patients, or of one."""
        return [str(folder / time / (f"{name}.nii.gz" if name else "")) for time in self.times]

    def arguments(self, folder, out, *options, name=None):
        """The command as it is typed."""
        return [self.name, *self.inputs(folder, name), "-o", str(out), "--quiet", *map(str, options)]

    def run(self, folder, out, *options, name=None):
        """Give the exit code of the command."""
        return main(self.arguments(folder, out, *options, name=name))

    def start(self, folder, out, *options, name=None):
        """Start the command in a process, and a group, of its own."""
        command = [sys.executable, "-m", "lesioncount", *self.arguments(folder, out, *options, name=name)]
        return subprocess.Popen(command, start_new_session=True, preexec_fn=_heed_signals)  # noqa: PLW1509 - takes no lock


def _heed_signals():
    """Tests that run in the background, or under nohup, have children that ignore signals unless told not to."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


COUNT = Kind("count", ("",), "counts.tsv", "report.html", ("_lesions.nii.gz",))
COMPARE = Kind(
    "compare", ("before", "after"), "changes.tsv", "changes.html",
    ("__1_lineages.nii.gz", "__2_lineages.nii.gz", "_changes.nii.gz"),
)  # fmt: skip
KINDS = (COUNT, COMPARE)


def records(out):
    """The records of a folder by name, without what a killed process has not finished."""
    found = (path for path in Path(out).glob("*.json") if path.name != "run.json" and not path.name.startswith("."))
    return {path.stem: path.read_bytes() for path in found}


def owners(out):
    """Of each record, the folder of the cohort that its maps are in."""
    found = {}
    for name, text in records(out).items():
        content = json.loads(text)
        found[name] = {Path(path).parts[-3 if "paths" in content else -2] for path in _paths(content)}
    return found


def _paths(content):
    return content["paths"] if "paths" in content else [content["input"]["path"]]


def files(out):
    """All files of a folder but for what tells of the run."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in Path(out).rglob("*")
        if path.is_file() and path.name not in RUN_FILES
    }


def history(out):
    """The lines of the history of a folder."""
    return [json.loads(line) for line in (Path(out) / "runs.jsonl").read_text().splitlines()]


def die_of_p1(_folder, item, *_):
    """As a process that the system ends."""
    if item.name == "p1":
        os._exit(3)


def signal_group(process, number):
    """Send a signal to a process, as somebody does with kill; SIGINT to its group, as a terminal does."""
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
