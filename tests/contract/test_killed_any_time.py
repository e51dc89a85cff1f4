"""Killed at a random moment, then resumed in every way there is: no record changes hands, and none is lost."""

import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from two_kinds import KINDS, files, history, owners, records, signal_group

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
NAMES = tuple(f"p{number:02}" for number in range(24))
OTHER = "q00"
OPTIONS = ("--save-labels",)


def wait_for(moment, run, out, rng, whole):
    """Until a share of the records is written; if it is below 0, for a share of the time that a whole run takes.

    However busy the machine is, a run is then killed where it was meant to be.
    """
    if moment < 0:
        time.sleep(-moment * whole)
        return
    while run.poll() is None and len(list(out.glob("p*.json"))) < min(moment, 1) * len(NAMES):
        time.sleep(0.001)
    time.sleep(rng.uniform(0, 0.01 if moment < 1 else 0.2 * whole))


def wait_for_end(run, out):
    """Wait as long as something happens in the folder."""
    before = None
    while True:
        try:
            return run.wait(60)
        except subprocess.TimeoutExpired:
            now = {path: path.stat().st_mtime_ns for path in (out, *out.glob("*"))}
            assert now != before, "for a minute, a run has neither written anything nor ended"
            before = now


def wait_for_workers(run):
    """Those of a run that was killed see it a moment later, and may finish what they write."""
    began = time.monotonic()
    while time.monotonic() - began < 120:
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("a worker outlived its parent")


def attack(kind, tmp_path, number, moment, whole):
    """Kill a run at a moment, and see what is left."""
    rng = np.random.default_rng(number)
    which, jobs = SIGNALS[number % len(SIGNALS)], 1 + number // len(SIGNALS) % 2
    out = tmp_path / f"out{number}"
    run = kind.start(tmp_path / "a", out, *OPTIONS, "-j", jobs)
    wait_for(moment, run, out, rng, whole)
    signal_group(run, which)
    wait_for_end(run, out)
    wait_for_workers(run)
    if not (out / "run.json").exists():
        assert records(out) == {}
        return "early"
    done = records(out)

    def refused(folder, *options):
        before = files(out)
        assert kind.run(folder, out, "--resume", *options) == 2
        assert files(out) == before

    refused(tmp_path / "b", *OPTIONS)
    refused(tmp_path / "a", *OPTIONS, "--threshold", "0.3")
    fewer = str(rng.choice(NAMES))
    assert kind.run(tmp_path / "a", out, "--resume", *OPTIONS, name=fewer) == 0
    refused(tmp_path / "b", *OPTIONS)
    assert kind.run(tmp_path / "others", out, "--resume", *OPTIONS) == 0
    assert {name: data for name, data in records(out).items() if name in done} == done
    assert kind.run(tmp_path / "a", out, "--resume", *OPTIONS) == 0
    left = files(out)
    assert {one: data for one, data in left.items() if not one.startswith(OTHER)} == files(tmp_path / "calm")
    assert left[f"{OTHER}.json"] == (tmp_path / "calm_others" / f"{OTHER}.json").read_bytes()
    assert {one for owner in owners(out).values() for one in owner} == {"a", "others"}
    assert kind.run(tmp_path / "more", out, "--resume", *OPTIONS) == 2  # the same names, from elsewhere and with others
    assert history(out)[-1]["status"] == "finished"
    shutil.rmtree(out)
    return "late" if len(done) == len(NAMES) else "in between"


def kill_many_times(kind, tmp_path, numbers):
    kind.cohort(tmp_path / "a", NAMES, 1)
    kind.cohort(tmp_path / "b", NAMES, 2)
    kind.cohort(tmp_path / "more", (*NAMES, "p99"), 3)
    kind.cohort(tmp_path / "others", (OTHER,), 4)
    assert kind.run(tmp_path / "others", tmp_path / "calm_others", *OPTIONS) == 0
    began = time.monotonic()
    assert wait_for_end(kind.start(tmp_path / "a", tmp_path / "calm", *OPTIONS), tmp_path / "calm") == 0
    whole = time.monotonic() - began
    moments = np.random.default_rng(len(numbers)).uniform(-0.2, 1.1, len(numbers))
    return [attack(kind, tmp_path, number, moment, whole) for number, moment in zip(numbers, moments, strict=True)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_five_kills(kind, tmp_path):
    assert len(kill_many_times(kind, tmp_path, range(5))) == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_two_hundred_kills(kind, tmp_path):
    ends = kill_many_times(kind, tmp_path, range(200))
    assert ends.count("in between") > 100
