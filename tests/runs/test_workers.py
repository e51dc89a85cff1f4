"""Processes that work side by side, and what becomes of their work when one of them dies."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from nifti_files import save
from runs.dying import deadly, deadly_once, twice, wrong

from lesioncount.cli import main
from lesioncount.errors import LesionCountError, WorkerDiedError
from lesioncount.runs.workers import Workers, results_of

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_every_item_has_its_result(jobs):
    found = {place: future.result() for place, future in results_of(twice, range(20), jobs=jobs)}
    assert found == {number: 2 * number for number in range(20)}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_belongs_to_its_item(jobs):
    found = dict(results_of(wrong, range(4), jobs=jobs))
    assert [place for place, future in found.items() if future.exception() is not None] == [1]
    with pytest.raises(ValueError, match="one is wrong"):
        found[1].result()


def test_only_the_item_that_kills_its_process_fails():
    found = dict(results_of(deadly, range(40), jobs=2))
    assert sorted(found) == list(range(40))
    assert [place for place, future in found.items() if future.exception() is not None] == [7]
    with pytest.raises(WorkerDiedError, match="died"):
        found[7].result()
    assert issubclass(WorkerDiedError, LesionCountError)


def test_an_item_whose_process_was_killed_by_something_else_is_done_again(tmp_path):
    found = dict(results_of(deadly_once, [(number, tmp_path) for number in range(6)], jobs=2))
    assert {place: future.result() for place, future in found.items()} == {number: 2 * number for number in range(6)}


def test_workers_take_no_work_after_they_were_shut_down():
    with Workers(1) as workers:
        assert workers.submit(twice, 4).result() == 8
    with pytest.raises(RuntimeError, match="shut down"):
        workers.submit(twice, 1)


def test_cancelled_work_is_not_begun():
    workers = Workers(1)
    futures = [workers.submit(time.sleep, 0.1) for _ in range(20)]
    workers.shutdown(cancel_futures=True)
    assert sum(future.cancelled() for future in futures) > 10


PROGRAM = """
import os, sys
from runs.dying import touch_for_ever
from lesioncount.runs.workers import Workers

if __name__ == "__main__":
    with Workers(1) as workers:
        workers.submit(touch_for_ever, sys.argv[1])
        print("begun", flush=True)
        sys.stdin.read()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_while_a_task_is_handed_out_leaves_nothing_to_wait_for(monkeypatch):
    workers = Workers(2)

    def interrupted(_call):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers._pool, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.submit(len, "abc")
    ended = threading.Thread(target=workers.shutdown, kwargs={"cancel_futures": True}, daemon=True)
    ended.start()
    ended.join(timeout=30)
    assert not ended.is_alive()


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    run = subprocess.Popen(
        [sys.executable, tmp_path / "program.py", tmp_path / "touched"],
        env=os.environ | {"PYTHONPATH": paths}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with run:
        assert run.stdout.readline() == b"begun\n"
        deadline = time.monotonic() + 30
        while not (tmp_path / "touched").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        run.kill()
        run.wait(10)
    time.sleep(1.0)
    last = (tmp_path / "touched").read_text()
    time.sleep(0.5)
    assert (tmp_path / "touched").read_text() == last


def test_a_worker_watches_its_parent_before_it_imports_what_takes_long():
    """Else the workers of a run that is killed as it begins stay for as long as that takes."""
    code = (
        "import sys, lesioncount; core = set(sys.modules); import lesioncount.folder.worker_start\n"
        "print(*sorted(name for name in sys.modules.keys() - core if name.startswith('lesioncount')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["lesioncount.folder", "lesioncount.folder.worker_start"]


CRASH = """
import gc
import os
import lesioncount.assess.beside_truth as comparison
found = comparison.true_lesions
def crash(path, *arguments, **options):
    if "s1" in str(path):
        os._exit(3)
    return found(path, *arguments, **options)
comparison.true_lesions = crash
"""


def test_an_evaluation_whose_worker_dies_says_so(tmp_path, rng, monkeypatch, capsys):
    for i in range(4):
        p = (rng.random((6, 7, 8)) ** 4).astype(np.float32)
        save(tmp_path / "maps" / f"s{i}.nii.gz", p)
        save(tmp_path / "truth" / f"s{i}.nii.gz", (p > 0.5).astype(np.uint8))
    assert main(["count", str(tmp_path / "maps"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    (tmp_path / "sitecustomize.py").write_text(CRASH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    options = ["--truth", str(tmp_path / "truth"), "-o", str(tmp_path / "eval"), "--jobs", "2", "--quiet"]
    assert main(["evaluate", str(tmp_path / "out"), *options]) == 2
    assert "died, possibly out of memory" in capsys.readouterr().err


def test_a_result_is_let_go_once_the_caller_has_done_with_it():
    """A report has a hundred thousand of them."""
    taken = []
    for _, future in results_of(abs, list(range(8)), jobs=2):
        taken.append(weakref.ref(future))
        del future
    gc.collect()
    assert [one() for one in taken] == [None] * 8


class Watched(list):
    """Remembers how many of its items were asked for."""

    n_asked = 0

    def __iter__(self):
        for item in super().__iter__():
            self.n_asked += 1
            yield item


def test_few_items_are_handed_out_before_their_results_are_taken():
    """Hundreds of megabytes would wait, of a hundred thousand."""
    items = Watched(range(200))
    results = results_of(abs, items, jobs=2)
    taken = [next(results) for _ in range(5)]
    assert items.n_asked < 40
    taken += results
    assert sorted(place for place, _ in taken) == list(range(200))
