"""``lesioncount compare``: what it prints, which exit code it has, and what a pipe or Ctrl-C does to it."""

import csv
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from nifti_files import save
from runs.small_cohort import PATIENTS, dataset, folders, lesions

from lesioncount.cli import main
from lesioncount.protocol import CountingProtocol
from lesioncount.runs import read_changes
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit, KnownTruth

EYE = np.eye(4)


@pytest.fixture
def times(tmp_path):
    return [str(folder) for folder in folders(tmp_path)]


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out")


def compare(*arguments):
    return main(["compare", *map(str, arguments)])


def rows(path):
    with Path(path).open() as table:
        return list(csv.DictReader(table, delimiter="\t"))


class TestWhatIsPrinted:
    def test_a_line_for_each_pair_and_the_sum(self, times, out, capsys):
        assert compare(*times, "-o", out) == 0
        printed = capsys.readouterr()
        lines = [line.rstrip() for line in printed.out.splitlines()]
        assert lines[0].split() == [
            "pair", "before", "after", "new", "90", "%", "P(any)", "gone", "90", "%", "persisting",
        ]  # fmt: skip
        assert lines[1].split() == ["p1", "2", "2", "0.70", "0", "to", "1", "0.70", "0.80", "0", "to", "1", "0.90"]
        total = "3 pairs of 3 patients compared, 1.6 new lesions expected in total, 0 failed."
        assert lines[-1] == f"{total} Results: {out}"
        assert printed.err.splitlines() == ["1/3 p1 ok", "2/3 p2 ok", "3/3 p3 ok"]

    def test_one_pair_of_one_patient(self, times, out, capsys):
        assert compare(f"{times[0]}/p1.nii.gz", f"{times[1]}/p1.nii.gz", "-o", out) == 0
        assert "1 pair of 1 patient compared, 0.7 new lesions" in capsys.readouterr().out

    def test_quiet_prints_nothing(self, times, out, capsys):
        assert compare(*times, "-o", out, "--quiet") == 0
        assert capsys.readouterr() == ("", "")

    def test_who_has_one_map_only_is_named(self, times, out, capsys):
        save(Path(times[0]) / "p9.nii.gz", lesions(0.5), EYE)
        assert compare(*times, "-o", out) == 0
        assert "note: 1 patient has one map only: p9\n" in capsys.readouterr().out

    def test_of_many_with_one_map_some_are_named(self, times, out, capsys):
        for n in range(7):
            save(Path(times[0]) / f"q{n}.nii.gz", lesions(0.5), EYE)
        assert compare(*times, "-o", out) == 0
        assert "note: 7 patients have one map only: q0, q1, q2, q3, q4 and 2 more\n" in capsys.readouterr().out

    def test_resampled_maps_are_noted_once(self, times, out, capsys):
        for name in ("p1", "p2"):
            save(Path(times[0]) / f"{name}.nii.gz", lesions(0.9)[::2, ::2, ::2], np.diag([2.0, 2.0, 2.0, 1.0]))
        assert compare(*times, "-o", out) == 0
        printed = capsys.readouterr().out
        assert "note: 2 patients: The map of session 1 has another grid, and was resampled" in printed
        assert printed.count("was resampled") == 1

    def test_a_note_of_one_patient_has_his_name(self, times, out, capsys):
        save(Path(times[0]) / "p2.nii.gz", lesions(0.9)[:, :8], EYE)
        assert compare(*times, "-o", out) == 0
        assert "note: p2: The map of session 1 covers 53% of the last one" in capsys.readouterr().out

    def test_of_many_pairs_twenty_are_listed(self, tmp_path, out, capsys):
        for n in range(23):
            for when in ("a", "b"):
                save(tmp_path / when / f"p{n:02}.nii.gz", lesions(0.5, shape=(6, 6, 6)), EYE)
        arguments = [tmp_path / "a", tmp_path / "b", "-o", out]
        assert compare(*arguments) == 0
        printed = capsys.readouterr().out
        assert "p19" in printed
        assert "p20" not in printed
        assert "… and 3 more (-v lists all)" in printed
        assert compare(*arguments, "--overwrite", "-v") == 0
        assert "p22" in capsys.readouterr().out

    def test_the_table_fits_a_terminal_and_pipes_have_whole_names(self, tmp_path, out, capsys, monkeypatch):
        name = f"a_patient_with_a_long_name_{'x' * 60}[bold]"
        for when in ("a", "b"):
            save(tmp_path / when / f"{name}.nii.gz", lesions(0.5), EYE)
        assert compare(tmp_path / "a", tmp_path / "b", "-o", out) == 0
        printed = capsys.readouterr().out
        assert f"{'x' * 60}[bold]" in printed
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "xterm")
        assert compare(tmp_path / "a", tmp_path / "b", "-o", out, "--resume") == 0
        table = capsys.readouterr().out.splitlines()[:2]
        assert "x" * 60 not in table[1]

    def test_calibrated_numbers_are_said_to_be(self, times, out, tmp_path, capsys):
        truth = KnownTruth.of([CandidateTable.of([0.9], other=[0.0])] * 40, [1] * 40, counted="new")
        CalibrationFit.fit(truth).save(tmp_path / "new.json")
        CalibrationFit(Calibration(1.0, -8.0, counted="gone")).save(tmp_path / "gone.json")
        calibrations = ["--calibration", tmp_path / "new.json", "--calibration", tmp_path / "gone.json"]
        assert compare(*times, "-o", out, *calibrations, "--interval", "conformal") == 0
        printed = capsys.readouterr().out
        assert printed.splitlines()[0] == "Calibrated: numbers of new and gone lesions"
        assert float(rows(f"{out}/changes.tsv")[0]["gone_mean_calibrated"]) < 0.01
        assert "new_interval90_low_conformal" in rows(f"{out}/changes.tsv")[0]

    def test_help_fits_on_a_page_and_says_what_is_written(self, capsys):
        with pytest.raises(SystemExit):
            compare("--help")
        text = " ".join(capsys.readouterr().out.split())
        for words in (
            "changes.tsv",
            "lineages.tsv",
            "registered to each other",
            "no diagnosis",
            "--pairs",
            "--sessions",
        ):
            assert words in text


class TestExitCodes:
    def test_a_bad_map_is_one(self, times, out, capsys):
        (Path(times[1]) / "p2.nii.gz").write_bytes(b"no map")
        assert compare(*times, "-o", out) == 1
        printed = capsys.readouterr()
        assert "failed: p2: " in printed.err
        assert "2/3 p2 failed" in printed.err
        assert "2 pairs of 2 patients compared" in printed.out
        assert "1 failed" in printed.out

    def test_of_many_failures_twenty_are_listed(self, tmp_path, out, capsys):
        for n in range(22):
            for when in ("a", "b"):
                (tmp_path / when).mkdir(exist_ok=True)
                np.save(tmp_path / when / f"p{n:02}.npy", np.full((2, 2, 2), 7.0))
        assert compare(tmp_path / "a", tmp_path / "b", "-o", out) == 1
        printed = capsys.readouterr()
        assert "… and 2 more, see changes.tsv" in printed.err
        assert "0 pairs of 0 patients compared, 0.0 new lesions expected in total, 22 failed" in printed.out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("{a}", "Whose scan is"),
            ("{a} {tmp}/none", "does not exist"),
            ("", "Expected maps: BASELINE FOLLOWUP"),
            ("{a} {b} --coupling 11", "a coupling from 0 to 10"),
            ("{a} {b} --tolerance-mm -1", "a tolerance from 0 to 50 mm"),
            ("{a} {b} --tolerance-mm nan", "a tolerance from 0 to 50 mm"),
            ("{a} {b} --interval conformal", "Guaranteed intervals need"),
            ("{a} {b} --calibration {tmp}/none.json", "cannot be read"),
            ("{a} {b} --sessions 1 2", "--sessions goes with one folder"),
            ("--pairs {tmp}/none.csv", "cannot be read"),
            ("{a} {b} --threshold 7", "threshold"),
        ],
    )
    def test_nothing_that_can_be_done_is_two(self, times, tmp_path, out, capsys, arguments, message):
        given = arguments.format(a=times[0], b=times[1], tmp=tmp_path).split()
        assert compare(*given, "-o", out) == 2
        assert message in capsys.readouterr().err
        assert not Path(out).exists()

    def test_an_earlier_run_is_two(self, times, out, capsys):
        assert compare(*times, "-o", out, "--quiet") == 0
        assert compare(*times, "-o", out, "--quiet") == 2
        assert "--resume" in capsys.readouterr().err
        assert compare(*times, "-o", out, "--quiet", "--resume") == 0
        assert compare(*times, "-o", out, "--quiet", "--overwrite") == 0

    def test_counts_and_comparisons_have_folders_of_their_own(self, times, out, capsys):
        assert compare(*times, "-o", out, "--quiet") == 0
        for option in ((), ("--resume",), ("--overwrite",)):
            assert main(["count", times[0], "-o", out, "--quiet", *option]) == 2
        assert capsys.readouterr().err.count("not those of lesioncount count. Choose another folder") == 3

    def test_the_calibration_of_counts_is_refused(self, times, out, tmp_path, capsys):
        assert main(["calibrate", "--positive-weight", "3", "-o", str(tmp_path / "c.json"), "--quiet"]) == 0
        assert compare(*times, "-o", out, "--calibration", tmp_path / "c.json") == 2
        assert "for the lesions of single scans, not for changes" in capsys.readouterr().err

    def test_the_calibration_of_changes_is_refused_by_a_count(self, times, out, tmp_path, capsys):
        CalibrationFit(Calibration(0.5, counted="new")).save(tmp_path / "new.json")
        assert main(["count", times[0], "-o", out, "--calibration", str(tmp_path / "new.json")]) == 2
        assert "fitted for the number of new lesions" in capsys.readouterr().err


class TestOptions:
    def test_they_reach_the_comparison(self, times, out):
        options = ["--tolerance-mm", "3", "--coupling", "0.5", "--threshold", "0.3", "--candidates", "peaks"]
        options += ["--write=labels"]
        assert compare(*times, "-o", out, "--quiet", *options) == 0
        recorded = read_changes(out).run.settings
        assert recorded.protocol == CountingProtocol(0.3, candidates="peaks")
        assert (recorded.tolerance_mm, recorded.coupling, recorded.save_labels) == (3, 0.5, True)
        assert (Path(out) / "p1_changes.nii.gz").exists()

    def test_one_folder_with_sessions(self, tmp_path, out):
        data = dataset(tmp_path / "data", ("pre", "post"))
        assert compare(data, "-o", out, "--quiet") == 2
        assert compare(data, "-o", out, "--quiet", "--sessions", "pre", "post") == 0
        assert rows(f"{out}/changes.tsv")[0]["pair"] == "sub-p1__ses-pre__ses-post"

    @pytest.mark.usefixtures("times")
    def test_a_table_of_pairs(self, tmp_path, out):
        (tmp_path / "pairs.tsv").write_text("baseline\tfollowup\nt1/p1.nii.gz\tt2/p2.nii.gz\n")
        assert compare("--pairs", tmp_path / "pairs.tsv", "-o", out, "--quiet") == 0
        row = rows(f"{out}/changes.tsv")[0]
        assert [Path(row[name]).name for name in ("path_before", "path_after")] == ["p1.nii.gz", "p2.nii.gz"]

    def test_a_mask_for_each_session(self, tmp_path, out):
        data = dataset(tmp_path / "data")
        for name in PATIENTS:
            for session in ("01", "02"):
                inside = np.zeros(lesions().shape, np.uint8)
                inside[:, : 10 if session == "01" else 15] = 1
                stem = f"sub-{name}/ses-{session}/anat/sub-{name}_ses-{session}_mask.nii.gz"
                save(tmp_path / "masks" / stem, inside, EYE)
        assert compare(data, "-o", out, "--quiet", "--mask", tmp_path / "masks") == 0
        first = rows(f"{out}/changes.tsv")[0]
        assert (first["n_candidates_before"], first["n_candidates_after"]) == ("2", "1")

    def test_bytes_with_a_scale(self, tmp_path, out):
        for when, heights in (("a", (0.9,)), ("b", (0.9, 0.6))):
            save(tmp_path / when / "p.nii.gz", np.round(lesions(*heights) * 255).astype(np.uint8), EYE)
        assert compare(tmp_path / "a", tmp_path / "b", "-o", out, "--quiet", "--scale", "1/255") == 0
        assert float(rows(f"{out}/changes.tsv")[0]["new_mean"]) == pytest.approx(0.6)


N_PATIENTS = 24


@pytest.fixture
def large(tmp_path, rng):
    """Maps that take a moment each."""
    for n in range(N_PATIENTS):
        for when in ("a", "b"):
            save(tmp_path / when / f"p{n:02}.nii.gz", (rng.random((24, 24, 24)) ** 4 * 0.7).astype(np.float32), EYE)
    return [tmp_path / "a", tmp_path / "b"]


def start(*arguments):
    command = [sys.executable, "-m", "lesioncount", "compare", *map(str, arguments), "--quiet"]
    return subprocess.Popen(command, start_new_session=True, preexec_fn=_heed_ctrl_c)  # noqa: PLW1509 - takes no lock


def _heed_ctrl_c():
    """Tests that run in the background have children that ignore Ctrl-C, unless they are told not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_records(out, n):
    deadline = time.monotonic() + 60
    while len(list(Path(out).glob("p*.json"))) < n:
        assert time.monotonic() < deadline, "the run did not get going"
        time.sleep(0.01)


def contents(out):
    return {path.name: path.read_bytes() for path in Path(out).iterdir() if not path.name.startswith("run")}


class Impatient(io.StringIO):
    """A terminal at which somebody presses Ctrl-C when the second patient is done."""

    def write(self, text):
        if text.startswith("2/3"):
            raise KeyboardInterrupt
        return super().write(text)


def test_who_interrupts_is_told_how_to_go_on(times, out, monkeypatch):
    terminal = Impatient()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert compare(*times, "-o", out) == 130
    assert "Interrupted. What was finished is written; --resume goes on from here." in terminal.getvalue()
    assert [row["pair"] for row in rows(f"{out}/changes.tsv")] == ["p1", "p2"]


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
class TestInterruptions:
    def test_ctrl_c_leaves_what_was_finished_and_resume_goes_on(self, large, out, tmp_path):
        run = start(*large, "-o", out)
        wait_for_records(out, 2)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 130
        assert 2 <= len(rows(f"{out}/changes.tsv")) < N_PATIENTS
        assert read_changes(out).interrupted
        assert compare(*large, "-o", out, "--resume", "--quiet") == 0
        assert compare(*large, "-o", tmp_path / "calm", "--quiet") == 0
        assert contents(out) == contents(tmp_path / "calm")

    def test_killed_and_resumed(self, large, out, tmp_path):
        run = start(*large, "-o", out, "--write=labels")
        wait_for_records(out, 2)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        assert compare(*large, "-o", out, "--resume", "--quiet", "--write=labels") == 0
        assert compare(*large, "-o", tmp_path / "calm", "--quiet", "--write=labels") == 0
        assert contents(out) == contents(tmp_path / "calm")

    def test_a_pipe_that_closes_ends_no_run(self, times, out):
        command = f"{sys.executable} -m lesioncount compare {' '.join(times)} -o {out}"
        command = f"{command} 2>&1 | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "1/3 p1 ok\n")
        assert len(rows(f"{out}/changes.tsv")) == 3
