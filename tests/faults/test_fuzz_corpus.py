"""Everything that fuzzing has found: each file, through the commands that read it, in a process that may die."""

import json
import re
import select
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lesioncount.runs import count_batch

TESTS = Path(__file__).resolve().parents[1]
CORPUS = TESTS / "fuzz_corpus"

SECONDS, BYTES = 20, 2 << 30

# Imports come with the first command of a process, and are not what is measured. Those of torch take long.
WARM_UP = ["protocols"]
WARM_UP_TORCH = ["predict", str(CORPUS / "checkpoints" / "empty.ckpt"), str(CORPUS / "checkpoints"), "-o", "nowhere"]

needs_training = pytest.mark.skipif(find_spec("lightning") is None, reason="needs the extra [train]")


class Replay:
    """The process, started again when it is gone."""

    def __init__(self):
        self.process, self.is_warm = None, False

    def __call__(self, *arguments):
        if self.process is None:
            self.start()
        if arguments[0] == "predict" and not self.is_warm:
            self.ask(WARM_UP_TORCH, 120)
            self.is_warm = True
        return self.ask([str(argument) for argument in arguments], SECONDS)

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "replay.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.ask(WARM_UP, 120)

    def ask(self, arguments, seconds):
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        is_ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if is_ready else ""
        if not line:
            code = self.process.poll() if is_ready else None
            self.stop()
            pytest.fail(f"{arguments[:2]} took over {seconds} s" if code is None else f"{arguments[:2]}: died, {code}")
        return json.loads(line)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
        self.process, self.is_warm = None, False


@pytest.fixture(scope="module")
def replay():
    process = Replay()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Three maps, their results, and a table of their truth."""
    folder = tmp_path_factory.mktemp("counted")
    (folder / "maps").mkdir()
    for i in range(3):
        values = (np.random.default_rng(i).random((5, 6, 7)) ** 6).astype(np.float32)
        np.save(folder / "maps" / f"s{i}.npy", values)
    count_batch([folder / "maps"], folder / "results")
    (folder / "truth.csv").write_text("scan,count\ns0,1\ns1,2\ns2,2\n")
    return folder


def files_of(kind):
    found = sorted((CORPUS / kind).iterdir())
    return pytest.mark.parametrize("path", found, ids=[path.name for path in found])


def check(answer):
    assert "Traceback" not in answer["said"], answer["said"]
    assert not re.search(r"unexpected \w*(Error|Exception)\b", answer["said"]), answer["said"]
    assert answer["code"] in (0, 1, 2), answer
    assert answer["code"] == 0 or answer["said"].strip()
    assert answer["peak"] < BYTES


@files_of("maps")
def test_maps(path, replay, tmp_path):
    # A copy: pieces of a map may lie beside it.
    place = tmp_path / path.name
    shutil.copytree(path, place) if path.is_dir() else shutil.copy(path, place)
    answer = replay("count", place, "-o", tmp_path / "out", "--save-labels")
    check(answer)
    if "damaged" in path.name:  # a count of such voxels would be another each time
        assert answer["code"] != 0
    check(replay("inspect", next(place.glob("*.npz"), place)))


@files_of("protocols")
def test_protocols(path, replay, counted, tmp_path):
    answer = replay("count", counted / "maps", "-o", tmp_path / "out", "--protocol", path)
    check(answer)
    assert answer["code"] == 2


@files_of("calibrations")
@pytest.mark.parametrize("interval", ["distribution", "conformal"])
def test_calibrations(path, interval, replay, counted, tmp_path):
    options = ["--calibration", path, "--interval", interval]
    answer = replay("count", counted / "maps", "-o", tmp_path / "out", *options)
    check(answer)
    assert answer["code"] == 2


@files_of("truth")
def test_tables_of_truth(path, replay, counted, tmp_path):
    answer = replay("evaluate", counted / "results", "-o", tmp_path / "out", "--truth-counts", path, "--counts-only")
    check(answer)
    assert answer["code"] == 2


def with_changed(counted, name, path, folder):
    shutil.copytree(counted / "maps", folder / "maps")
    shutil.copytree(counted / "results", folder / "results")
    # The maps are where the record says, so that pictures are cut from them.
    content = path.read_bytes().replace(b"/nowhere/maps", str(folder / "maps").encode())
    (folder / "results" / name).write_bytes(content)
    return folder / "results"


@files_of("records")
def test_records(path, replay, counted, tmp_path):
    read_back(replay, with_changed(counted, "s0.json", path, tmp_path), counted, tmp_path)


@files_of("runs")
def test_runs(path, replay, counted, tmp_path):
    read_back(replay, with_changed(counted, "run.json", path, tmp_path), counted, tmp_path)


@files_of("histories")
def test_histories(path, replay, counted, tmp_path):
    results = with_changed(counted, "runs.jsonl", path, tmp_path)
    check(replay("count", counted / "maps", "-o", results, "--resume"))


@files_of("groups")
def test_tables_of_groups(path, replay, tmp_path):
    (tmp_path / "maps").mkdir()
    for i in range(6):
        np.save(tmp_path / "maps" / f"s{i}.npy", np.random.default_rng(i).random((5, 6, 7)) ** 6)
    count_batch([tmp_path / "maps"], tmp_path / "results")
    options = ["--by", "arm", "--exposure", "years", "--participants", path, "--imputations", "2"]
    check(replay("summarize", tmp_path / "results", *options))


def read_back(replay, results, counted, tmp_path):
    truth = ["--truth-counts", counted / "truth.csv"]
    check(replay("evaluate", results, "-o", tmp_path / "evaluated", *truth, "--counts-only"))
    check(replay("calibrate", results, "-o", tmp_path / "c.json", *truth))
    check(replay("page-of-results", results))
    check(replay("count", tmp_path / "maps", "-o", results, "--resume"))


@files_of("evaluations")
def test_evaluations(path, replay, tmp_path):
    shutil.copy(path, tmp_path / "evaluation.json")
    check(replay("page-of-evaluation", tmp_path))


@needs_training
@files_of("configurations")
def test_configurations(path, replay, tmp_path):
    answer = replay("train", path, "-o", tmp_path / "out")
    check(answer)
    assert answer["code"] == 2


@needs_training
@files_of("checkpoints")
def test_checkpoints(path, replay, tmp_path):
    answer = replay("predict", path, tmp_path, "-o", tmp_path / "out")
    check(answer)
    assert answer["code"] == 2
    assert "weights_only" not in answer["said"]
