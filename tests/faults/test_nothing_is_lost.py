"""Files of the user, runs that end early and runs that meet: nothing is lost, and nothing wrong looks right."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main
from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.runs import Settings, count_batch, count_file
from lesioncount.runs.count import Counting
from lesioncount.runs.engine import work_on_lot

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, locks and pipes of POSIX")


@pytest.fixture
def maps(tmp_path, rng):
    for i in range(8):
        save(tmp_path / "maps" / f"s{i}.nii.gz", (rng.random((8, 9, 10)) ** 4 * 0.7).astype(np.float32))
    return tmp_path / "maps"


def rows(path):
    with Path(path).open() as table:
        return list(csv.DictReader(table, delimiter="\t"))


def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


class TestFilesOfTheUser:
    """Only what we wrote, by name and hash, is ever replaced or removed."""

    @pytest.mark.parametrize("options", [[], ["--overwrite"], ["--resume"]])
    @pytest.mark.parametrize("is_broken", [False, True])
    def test_label_maps_of_an_expert_stay(self, tmp_path, options, is_broken):
        path = save(tmp_path / "sub01.nii.gz", np.full((4, 5, 6), 0.4, np.float32))
        if is_broken:
            path.write_bytes(b"broken")
        save(tmp_path / "sub01_lesions.nii.gz", np.ones((4, 5, 6), np.uint8))
        before = (tmp_path / "sub01_lesions.nii.gz").read_bytes()
        assert main(["count", str(path), "-o", str(tmp_path), "--quiet", *options]) == (1 if is_broken else 0)
        assert (tmp_path / "sub01_lesions.nii.gz").read_bytes() == before
        assert main(["count", str(path), "-o", str(tmp_path), "--quiet", "--overwrite", "--write=labels"]) == 2
        assert (tmp_path / "sub01_lesions.nii.gz").read_bytes() == before

    def test_a_label_map_that_was_corrected_is_kept(self, maps, tmp_path, capsys):
        arguments = ["count", str(maps), "-o", str(tmp_path / "out"), "--write=labels", "--quiet"]
        assert main(arguments) == 0
        corrected = save(tmp_path / "out" / "s0_lesions.nii.gz", np.ones((8, 9, 10), np.uint8)).read_bytes()
        assert main([*arguments, "--resume"]) == 0
        assert (tmp_path / "out" / "s0_lesions.nii.gz").read_bytes() == corrected
        assert main([*arguments, "--overwrite"]) == 2
        assert "s0_lesions.nii.gz is not a result of an earlier run as lesioncount wrote it" in capsys.readouterr().err
        assert (tmp_path / "out" / "s0_lesions.nii.gz").read_bytes() == corrected

    @pytest.mark.parametrize("name", ["counts.tsv", "report.html"])
    def test_a_table_or_page_that_was_edited_is_kept(self, maps, tmp_path, name):
        pytest.importorskip("jinja2")
        arguments = ["count", str(maps), "-o", str(tmp_path / "out"), "--report", "--quiet"]
        assert main(arguments) == 0
        with (tmp_path / "out" / name).open("a") as file:
            file.write("a remark\n")
        before = (tmp_path / "out" / name).read_bytes()
        for option in ("--resume", "--overwrite"):
            assert main([*arguments, option]) == 2
            assert (tmp_path / "out" / name).read_bytes() == before

    @pytest.mark.parametrize("name", ["evaluation.json", "scores.tsv", "scans.tsv", "evaluation.html"])
    def test_evaluate_leaves_files_of_others_alone(self, maps, tmp_path, name):
        assert main(["count", str(maps), "-o", str(tmp_path / "out"), "--quiet"]) == 0
        (tmp_path / "truth.csv").write_text("scan,count\n" + "".join(f"s{i},{i}\n" for i in range(8)))
        (tmp_path / "eval").mkdir()
        (tmp_path / "eval" / name).write_text("mine")
        arguments = ["evaluate", str(tmp_path / "out"), "--truth-counts", str(tmp_path / "truth.csv"), "--quiet"]
        for option in ([], ["--overwrite"]):
            assert main([*arguments, "-o", str(tmp_path / "eval"), *option]) == 2
        assert snapshot(tmp_path / "eval") == {name: b"mine"}
        assert main([*arguments, "-o", str(tmp_path / "other")]) == 0
        assert main([*arguments, "-o", str(tmp_path / "other")]) == 2
        assert main([*arguments, "-o", str(tmp_path / "other"), "--overwrite"]) == 0

    def test_nothing_is_written_through_a_link_that_leads_out(self, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "figures").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(MapFileError, match="leads out of"):
            OutputFolder(tmp_path / "out").write_text("figures/x.svg", "<svg/>")
        (tmp_path / "out" / "x.svg").symlink_to(tmp_path / "elsewhere" / "x.svg")
        with pytest.raises(MapFileError, match="not a result"):
            OutputFolder(tmp_path / "out").write_text("x.svg", "<svg/>")
        assert not list((tmp_path / "elsewhere").iterdir())

    def test_calibrate_replaces_calibrations_of_ours_only(self, tmp_path):
        path = tmp_path / "c.json"
        arguments = ["calibrate", "--positive-weight", "3", "-o", str(path), "--quiet"]
        path.write_text("mine")
        assert main([*arguments, "--overwrite"]) == 2
        assert path.read_text() == "mine"
        path.unlink()
        assert main(arguments) == 0
        assert main(arguments) == 2
        assert main([*arguments, "--overwrite"]) == 0
        path.write_text(path.read_text().replace("3", "4"))
        assert main([*arguments, "--overwrite"]) == 2

    def test_a_record_that_was_edited_is_made_again(self, maps, tmp_path):
        arguments = ["count", str(maps), "-o", str(tmp_path / "out"), "--quiet"]
        assert main(arguments) == 0
        whole = (tmp_path / "out" / "s3.json").read_text()
        record = json.loads(whole)
        record["count"]["count_mode"] = 99
        (tmp_path / "out" / "s3.json").write_text(json.dumps(record))
        assert main([*arguments, "--resume"]) == 0
        assert (tmp_path / "out" / "s3.json").read_text() == whole
        assert "99" not in {row["count_mode"] for row in rows(tmp_path / "out" / "counts.tsv")}

    def test_a_record_under_another_name_is_not_ours(self, maps, tmp_path):
        out = tmp_path / "out"
        assert main(["count", str(maps / "s0.nii.gz"), "-o", str(out), "--quiet"]) == 0
        (out / "s1.json").write_bytes((out / "s0.json").read_bytes())
        before = snapshot(out)
        assert main(["count", str(maps), "-o", str(out), "--overwrite", "--quiet"]) == 2
        assert snapshot(out) == before


class TestRunsThatMeet:
    """One run per folder."""

    def test_the_second_run_says_who_has_the_folder(self, maps, tmp_path):
        out = tmp_path / "out"
        seen = []

        def second(*_):
            if not seen:
                command = [sys.executable, "-m", "lesioncount", "count", str(maps), "-o", str(out), "--overwrite"]
                seen.append(subprocess.run(command, capture_output=True, text=True, check=False, timeout=60))

        results = count_batch([maps], out, progress=second)
        assert not results.failed
        assert seen[0].returncode == 2
        assert f"is in use by process {os.getpid()} on " in seen[0].stderr
        assert len(rows(out / "counts.tsv")) == 8

    def test_a_lock_that_was_left_behind_is_no_hindrance(self, maps, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / ".lesioncount.lock").write_text('{"pid": 1, "host": "gone", "began": "once"}')
        assert main(["count", str(maps), "-o", str(tmp_path / "out"), "--quiet"]) == 0

    def test_nothing_hidden_is_left(self, maps, tmp_path):
        arguments = ["count", str(maps), "-o", str(tmp_path / "out"), "--write=labels", "--jobs", "2", "--quiet"]
        assert main(arguments) == 0
        assert not [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]

    @pytest.mark.parametrize("is_interrupted", [False, True])
    @pytest.mark.parametrize("name", ["s0.json", "figures/s0.svg"])
    def test_what_a_killed_worker_was_writing_goes_with_the_run(self, tmp_path, is_interrupted, name):
        folder, left = OutputFolder(tmp_path), tmp_path / "left"
        with folder.replacing(name) as temporary:
            temporary.write_text("half a file")
            os.link(temporary, left)
        with suppress(KeyboardInterrupt), folder.alone(listed_in="run.json"):
            left.rename(temporary)
            if is_interrupted:
                raise KeyboardInterrupt
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [Path(name).name]

    def test_hidden_files_of_the_user_stay(self, maps, tmp_path):
        out = tmp_path / "out"
        (out / ".lesioncount-unfinished-work").mkdir(parents=True)
        (out / ".lesioncount-notes").write_text("mine")
        (out / ".lesioncount-unfinished-link").symlink_to(maps / "s0.nii.gz")
        assert main(["count", str(maps), "-o", str(out), "--quiet"]) == 0
        hidden = sorted(path.name for path in out.iterdir() if path.name.startswith("."))
        assert hidden == [".lesioncount-notes", ".lesioncount-unfinished-link", ".lesioncount-unfinished-work"]


class TestFilesThatChange:
    """What a record tells is what was counted."""

    @pytest.mark.parametrize("which", ["map", "mask"])
    @pytest.mark.parametrize("is_replaced", [False, True])
    def test_a_file_that_is_changed_between_hashing_and_counting(self, maps, tmp_path, monkeypatch, which, is_replaced):
        mask = save(tmp_path / "mask.nii.gz", np.ones((8, 9, 10), np.uint8))
        scan = ScanFiles("s0", maps / "s0.nii.gz", mask)
        changed = scan.path if which == "map" else mask

        def change_and_count(*arguments, **options):
            new = save(tmp_path / "new.nii.gz", np.full((8, 9, 10), 0.3, np.float32))
            new.replace(changed) if is_replaced else changed.write_bytes(new.read_bytes())
            return count_file(*arguments, **options)

        monkeypatch.setattr("lesioncount.runs.count.count_file", change_and_count)
        assert (
            "was changed while it was counted"
            in work_on_lot([scan], Counting(Settings()), tmp_path / "out").done[0].error
        )
        monkeypatch.undo()
        assert work_on_lot([scan], Counting(Settings()), tmp_path / "out").done[0].is_ok


class TestRunsThatEndEarly:
    """Killed, cut off, or without anybody who reads what they print."""

    @pytest.mark.parametrize("delay", [0.02, 0.1, 0.3, 0.6])
    def test_killed_with_label_maps_and_resumed(self, maps, tmp_path, delay):
        pytest.importorskip("jinja2")
        for i in range(8, 60):
            os.link(maps / f"s{i % 8}.nii.gz", maps / f"s{i}.nii.gz")
        out, options = tmp_path / "out", ["--write=labels"]
        run = subprocess.Popen(
            [sys.executable, "-m", "lesioncount", "count", str(maps), "-o", str(out), *options, "--quiet", "-j", "2"]
        )
        deadline = time.monotonic() + 30
        while not list(out.glob("s*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(delay)
        run.kill()
        run.wait()
        assert main(["count", str(maps), "-o", str(out), *options, "--quiet", "--resume", "-j", "2"]) == 0
        assert main(["count", str(maps), "-o", str(tmp_path / "calm"), *options, "--quiet"]) == 0
        killed, calm = snapshot(out), snapshot(tmp_path / "calm")
        assert killed.keys() == calm.keys()
        assert [name for name in calm if killed[name] != calm[name]] == ["run.json", "runs.jsonl"]

    def test_a_pipe_that_closes_ends_no_run(self, maps, tmp_path):
        count = f"{sys.executable} -m lesioncount count {maps} -o {tmp_path / 'out'}"
        command = f"{count} 2>&1 | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0
        assert len(rows(tmp_path / "out" / "counts.tsv")) == 8

    @pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", ">/dev/full", "2>/dev/full"])
    @pytest.mark.parametrize("is_broken", [False, True])
    def test_the_exit_code_is_that_of_the_scans(self, maps, tmp_path, closed, is_broken):
        if is_broken:
            (maps / "s9.nii.gz").write_bytes(b"broken")
        command = f"{sys.executable} -m lesioncount count {maps} -o {tmp_path / 'out'} {closed}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == int(is_broken)
        assert len(rows(tmp_path / "out" / "counts.tsv")) == 8 + is_broken
        assert "Traceback" not in done.stderr


class TestInputsThatAreNone:
    """One bad name is a failed row, or a sentence."""

    def test_a_loop_of_links_is_a_failed_row(self, maps, tmp_path):
        (maps / "loop.nii.gz").symlink_to(maps / "loop.nii.gz")
        assert main(["count", str(maps), "-o", str(tmp_path / "out"), "--quiet"]) == 1
        assert [row["scan"] for row in rows(tmp_path / "out" / "counts.tsv") if row["status"] == "failed"] == ["loop"]

    def test_a_name_that_is_too_long_is_a_failed_row(self, maps, tmp_path):
        arguments = ["count", str(maps), "x" * 300 + ".nii.gz", "-o", str(tmp_path / "out"), "--quiet"]
        assert main(arguments) == 1
        assert [row["status"] for row in rows(tmp_path / "out" / "counts.tsv")] == ["ok"] * 8 + ["failed"]

    @pytest.mark.parametrize("empty", ["", " "])
    def test_an_empty_input_is_not_the_current_folder(self, maps, tmp_path, monkeypatch, capsys, empty):
        monkeypatch.chdir(maps)
        assert main(["count", empty, "-o", str(tmp_path / "out")]) == 2
        assert "One of the inputs is empty" in capsys.readouterr().err
        with pytest.raises(SystemExit, match="2"):
            main(["count", ".", "-o", empty])
        with pytest.raises(SystemExit, match="2"):
            main(["evaluate", empty, "-o", "x", "--truth", "y"])

    @pytest.mark.parametrize("jobs", ["99999999999", "9" * 5000, "0", "-1", "²", "1.5"])
    def test_numbers_of_processes_that_are_none(self, maps, tmp_path, capsys, jobs):
        with pytest.raises(SystemExit, match="2"):
            main(["count", str(maps), "-o", str(tmp_path / "out"), "--jobs", jobs])
        assert "Traceback" not in capsys.readouterr().err


class TestClusters:
    """What becomes of a run when its cluster is not what it should be."""

    def test_a_scheduler_without_workers_is_said_within_seconds(self, maps, tmp_path, capsys, monkeypatch):
        distributed = pytest.importorskip("distributed")
        monkeypatch.setattr("lesioncount.runs.workers._SECONDS_TO_CONNECT", 1)
        with distributed.LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", protocol="tcp://", host="127.0.0.1"
        ) as cluster:
            address = cluster.scheduler_address
            assert main(["count", str(maps), "-o", str(tmp_path / "out"), "--cluster", address, "--quiet"]) == 2
        assert "has no workers" in capsys.readouterr().err

    @pytest.mark.parametrize("address", ["tls://127.0.0.1:9", "nonsense", "tcp://", "tcp://127.0.0.1:99999999"])
    def test_addresses_that_lead_nowhere(self, maps, tmp_path, capsys, monkeypatch, address):
        pytest.importorskip("distributed")
        monkeypatch.setattr("lesioncount.runs.workers._SECONDS_TO_CONNECT", 1)
        assert main(["count", str(maps), "-o", str(tmp_path / "out"), "--cluster", address, "--quiet"]) == 2
        assert "There is no Dask scheduler" in capsys.readouterr().err


@pytest.mark.slow
class TestManyTimes:
    """The promises, as often as it takes to believe them."""

    def test_two_hundred_kills(self, maps, tmp_path, rng):
        pytest.importorskip("jinja2")
        for i in range(8, 40):
            os.link(maps / f"s{i % 8}.nii.gz", maps / f"s{i}.nii.gz")
        command = [*COUNT, str(maps), "--jobs", "2", "--write=labels", "--report", "--quiet", "-o"]
        began = time.monotonic()
        subprocess.run([*command, str(tmp_path / "calm")], check=True)
        whole = time.monotonic() - began
        expected = without_time(snapshot(tmp_path / "calm"))
        for number, delay in enumerate(rng.uniform(0, 1.1 * whole, 200)):
            out = tmp_path / f"out{number}"
            run = subprocess.Popen([*command, str(out)], start_new_session=True)
            time.sleep(delay)
            run.kill()
            run.wait()
            assert ends_with_its_parent(run.pid), f"a worker outlived its parent, killed after {delay:.3f} s"
            assert subprocess.run([*command, str(out), "--resume"], check=False).returncode == 0
            assert without_time(snapshot(out)) == expected, f"killed after {delay:.3f} s"
            shutil.rmtree(out)

    def test_fifty_pairs_of_runs_into_one_folder(self, maps, tmp_path, rng):
        complete = [(f"s{i}", "ok") for i in range(8)]
        for number, delay in enumerate(rng.uniform(0, 1.0, 50)):
            out = tmp_path / f"out{number}"
            command = [*COUNT, str(maps), "-o", str(out), "--resume", "--quiet"]
            first = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            second = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            codes = {first.wait(60), second.wait(60)}
            assert codes <= {0, 2}
            assert 0 in codes
            assert [(row["scan"], row["status"]) for row in rows(out / "counts.tsv")] == complete
            shutil.rmtree(out)


COUNT = [sys.executable, "-m", "lesioncount", "count"]

# When a page was written, what that makes of its check sum, and the folder that it is in.
_TIMES = re.compile(rb"<time>.*?</time>|on \d{4}-\d\d-\d\d|checksum: \w+|[^\s<>]*/out\d+|[^\s<>]*/calm")


def without_time(files):
    """What a run has written, without what says when and where it was."""
    content = {name: data for name, data in files.items() if name not in ("run.json", "runs.jsonl")}
    return {name: _TIMES.sub(b"", data) if name == "report.html" else data for name, data in content.items()}


def ends_with_its_parent(session):
    """Whether no process of a run is left: a moment later on a quiet machine, and in ten seconds on a busy one."""
    began = time.monotonic()
    while alive_in_session(session):
        if time.monotonic() - began > 10:
            return False
        time.sleep(0.05)
    return True


def alive_in_session(session):
    """The processes that a run has left behind."""
    found = subprocess.run(["ps", "-o", "pid=,stat=", "-s", str(session)], capture_output=True, text=True, check=False)
    return [line for line in found.stdout.splitlines() if "Z" not in line.split()[1]]
