"""Killed at a random moment, then resumed in every way there is: no record changes hands, and none is lost."""

import os
import shutil
import signal
import time

import numpy as np
import pytest
from two_kinds import KINDS, files, history, owners, records, signal_group

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
NAMES = tuple(f"p{number:02}" for number in range(24))
OPTIONS = ("--write=labels",)


def attack(kind, tmp_path, number, moment, whole):
    """Kill a run at a moment (a share of the time that it takes), and see what is left."""
    rng = np.random.default_rng(number)
    which, jobs = SIGNALS[number % len(SIGNALS)], 1 + number // len(SIGNALS) % 2
    out = tmp_path / f"out{number}"
    run = kind.start(tmp_path / "a", out, *OPTIONS, "-j", jobs)
    time.sleep(moment * whole)
    signal_group(run, which)
    run.wait(60)
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
    assert {name: data for name, data in records(out).items() if name in done} == done
    assert kind.run(tmp_path / "a", out, "--resume", *OPTIONS) == 0
    assert files(out) == files(tmp_path / "calm")
    assert {one for owner in owners(out).values() for one in owner} == {"a"}
    assert kind.run(tmp_path / "more", out, "--resume", *OPTIONS) == 2  # the same names, from elsewhere and with others
    assert history(out)[-1]["status"] == "finished"
    shutil.rmtree(out)
    return "late" if len(done) == len(NAMES) else "in between"


def kill_many_times(kind, tmp_path, numbers):
    kind.cohort(tmp_path / "a", NAMES, 1)
    kind.cohort(tmp_path / "b", NAMES, 2)
    kind.cohort(tmp_path / "more", (*NAMES, "p99"), 3)
    began = time.monotonic()
    assert kind.start(tmp_path / "a", tmp_path / "calm", *OPTIONS).wait(120) == 0
    whole = time.monotonic() - began
    moments = np.random.default_rng(len(numbers)).uniform(0.2, 1.1, len(numbers))
    return [attack(kind, tmp_path, number, moment, whole) for number, moment in zip(numbers, moments, strict=True)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_five_kills(kind, tmp_path):
    assert len(kill_many_times(kind, tmp_path, range(5))) == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_hundred_kills(kind, tmp_path):
    ends = kill_many_times(kind, tmp_path, range(100))
    assert ends.count("in between") > 20
