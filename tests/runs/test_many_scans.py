"""Very many scans: lots that wait for the disk once, records in folders, and tables that are not made again."""

import json
import os
import shutil

import numpy as np
import pytest
from nifti_files import save

from lesioncount.assess.beside_truth import TruthOptions
from lesioncount.assess.evaluation import evaluate
from lesioncount.assess.shown import can_be_shown, shown_scans
from lesioncount.cli import main
from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.results.record_files import folder_of, is_sharded, record_in, records_in, shard_of
from lesioncount.runs import count_batch, read_results
from lesioncount.runs.engine import lots_of

N_SCANS = 40


@pytest.fixture
def maps(tmp_path, rng):
    for number in range(N_SCANS):
        voxels = np.zeros((6, 7, 8), np.float32)
        voxels[1:3, 1:3, 1:3] = rng.uniform(0.2, 1)
        save(tmp_path / "maps" / f"s{number:02}.nii.gz", voxels)
    return tmp_path / "maps"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr("lesioncount.results.record_files.MANY_SCANS", 10)


def tables(out):
    return {path.name: path.read_bytes() for path in out.glob("*.tsv")}


def records(out):
    return {name.rpartition("/")[2]: (out / name).read_bytes() for name in records_in(out) if name != "run.json"}


def break_one(maps):
    (maps / "s13.nii.gz").write_bytes(b"no map")


class TestLots:
    """How scans are put together."""

    def test_small_scans_share_a_lot_and_large_ones_do_not(self, tmp_path):
        scans = []
        for number in range(200):
            path = tmp_path / f"s{number}.npy"
            path.write_bytes(b"\0" * (300_000 if number == 50 else 1000))
            scans.append(ScanFiles(path.stem, path))
        lots = list(lots_of(scans, jobs=1))
        assert [scan for lot in lots for scan in lot] == scans
        assert max(map(len, lots)) == 25
        assert (scans[50],) in lots

    def test_a_few_scans_are_lots_of_their_own(self, maps):
        scans = [ScanFiles(path.stem, path) for path in sorted(maps.iterdir())[:15]]
        assert [len(lot) for lot in lots_of(scans, jobs=2)] == [1] * 15

    def test_what_is_no_file_is_a_lot_of_its_own(self, tmp_path):
        paths = [tmp_path, tmp_path / "gone", tmp_path / ("x" * 300), tmp_path / "a\0b"] * 16
        assert {len(lot) for lot in lots_of([ScanFiles("s", path) for path in paths], jobs=1)} == {1}

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_results_are_the_same_in_lots_and_alone(self, maps, out, tmp_path, monkeypatch, jobs):
        break_one(maps)
        together = count_batch([maps], out, jobs=jobs)
        monkeypatch.setattr("lesioncount.runs.engine._MOST_ITEMS", 1)
        alone = count_batch([maps], tmp_path / "alone", jobs=1)
        assert [scan.name for scan in together.failed] == [scan.name for scan in alone.failed] == ["s13"]
        assert tables(out) == tables(tmp_path / "alone")
        assert records(out) == records(tmp_path / "alone")

    def test_a_record_that_a_power_cut_has_emptied_is_made_again(self, maps, out, monkeypatch):
        """As the disk is then: the ledger is on it, and so are the names of files, but not what is in them."""
        monkeypatch.setattr(OutputFolder, "_settle", lambda *_: None)
        count_batch([maps], out)
        whole = records(out)
        (out / "run.json").unlink()
        for name in list(whole)[::2]:
            (out / name).write_bytes(b"")
        assert main(["count", str(maps), "-o", str(out), "--resume", "--quiet"]) == 0
        assert records(out) == whole

    def test_an_empty_file_of_the_user_is_not_announced_as_ours(self, tmp_path):
        folder = OutputFolder(tmp_path)
        (tmp_path / "mine.json").touch()
        folder.announce(["mine.json", "ours.json"])
        (tmp_path / "ours.json").touch()
        assert not folder.is_ours("mine.json")
        assert folder.is_ours("ours.json")
        with pytest.raises(MapFileError, match=r"mine\.json is not a result"):
            folder.write_announced("mine.json", "{\n}\n")
        folder.write_announced("ours.json", '{\n"a": 1\n}\n')
        assert json.loads((tmp_path / "ours.json").read_text())["a"] == 1
        folder.write_announced("mine.json", '{\n"a": 1\n}\n', though_changed=True)

    def test_a_file_that_appears_while_others_are_counted_fails_its_scan_only(self, maps, out):
        def put(_summary, done, _total):
            if done == 1:
                (out / "s39.json").write_text("mine")

        results = count_batch([maps], out, progress=put)
        assert [scan.name for scan in results.failed] == ["s39"]
        assert (out / "s39.json").read_text() == "mine"


CRASH = """
import os
import lesioncount.runs.count as counting
count_file = counting.count_file
def crash(path, **options):
    if "s05" in str(path):
        os._exit(3)
    return count_file(path, **options)
counting.count_file = crash
"""


def test_a_scan_that_kills_its_process_takes_none_of_its_lot_with_it(maps, out, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(CRASH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    results = count_batch([maps], out, jobs=2)
    assert [(scan.name, scan.error) for scan in results.failed] == [
        ("s05", "the process that counted it died, possibly out of memory")
    ]
    assert len(results.counted) == N_SCANS - 1


@pytest.mark.usefixtures("few_are_many")
class TestRecordsInFolders:
    """Above some number of scans, records are in folders by a hash of their names."""

    def test_every_reader_finds_them(self, maps, out, tmp_path):
        count_batch([maps], out)
        assert is_sharded(out)
        assert {path.name for path in out.glob("*.json")} == {"run.json"}
        assert record_in(out, "s07") == f"records/{shard_of('s07')}/s07.json"
        results = read_results(out)
        assert len(results.counted) == N_SCANS
        assert len(results.record("s07").lesions) == 1
        assert can_be_shown(out / record_in(out, "s07"))
        assert [shown.name for shown in shown_scans(out / record_in(out, "s07"))] == ["s07"]
        (tmp_path / "truth.tsv").write_text("scan\tcount\n" + "".join(f"s{n:02}\t1\n" for n in range(N_SCANS)))
        truth = TruthOptions(table=tmp_path / "truth.tsv")
        assert evaluate(out, tmp_path / "evaluation", truth, counts_only=True).n_scans == N_SCANS

    def test_the_tables_are_those_of_records_side_by_side(self, maps, out, tmp_path, monkeypatch):
        count_batch([maps], out)
        monkeypatch.undo()
        count_batch([maps], tmp_path / "flat")
        assert not is_sharded(tmp_path / "flat")
        assert tables(out) == tables(tmp_path / "flat")
        assert records(out) == records(tmp_path / "flat")

    def test_a_folder_that_grows_keeps_its_records_where_they_are(self, maps, out, tmp_path):
        few = tmp_path / "few"
        shutil.copytree(maps, few, ignore=lambda _, names: [name for name in names if name > "s04.nii.gz"])
        count_batch([few], out)
        before = (out / "s03.json").stat().st_mtime_ns
        shutil.rmtree(few)
        shutil.copytree(maps, few)
        results = count_batch([few], out, resume=True)
        assert len(results.counted) == N_SCANS
        assert sorted(path.name for path in out.glob("s*.json")) == [f"s{n:02}.json" for n in range(5)]
        assert (out / "s03.json").stat().st_mtime_ns == before
        assert len(records(out)) == N_SCANS

    def test_only_what_changed_is_counted_again(self, maps, out):
        count_batch([maps], out)
        before = {name: (out / name).stat().st_mtime_ns for name in records_in(out)}
        save(maps / "s11.nii.gz", np.full((6, 7, 8), 0.5, np.float32))
        count_batch([maps], out, resume=True)
        changed = {name for name in records_in(out) if before[name] != (out / name).stat().st_mtime_ns}
        assert changed == {record_in(out, "s11"), "run.json"}

    def test_overwriting_removes_records_of_scans_that_are_gone(self, maps, out):
        count_batch([maps], out)
        (maps / "s20.nii.gz").unlink()
        count_batch([maps], out, overwrite=True)
        assert "s20.json" not in records(out)
        assert len(records(out)) == N_SCANS - 1

    @pytest.mark.parametrize("option", ["--resume", "--overwrite"])
    def test_files_of_the_user_among_them_stay(self, maps, out, capsys, option):
        count_batch([maps], out)
        shutil.copy(maps / "s09.nii.gz", maps / "s99.nii.gz")
        mine = out / record_in(out, "s99")
        mine.write_text("mine")
        assert main(["count", str(maps), "-o", str(out), option, "--quiet"]) == 2
        assert "s99.json is not a result of an earlier run" in capsys.readouterr().err
        assert mine.read_text() == "mine"

    def test_a_missing_record_is_named_with_its_folder(self, maps, out):
        results = count_batch([maps], out)
        (out / record_in(out, "s09")).unlink()
        with pytest.raises(MapFileError, match=rf"records/{shard_of('s09')}/s09\.json is missing"):
            results.record("s09")


def test_a_folder_of_somebody_else_called_records_is_no_place_for_ours(maps, out):
    (out / "records").mkdir(parents=True)
    (out / "records" / "mine.txt").write_text("mine")
    count_batch([maps], out)
    assert len(list(out.glob("s*.json"))) == N_SCANS
    assert [path.name for path in (out / "records").iterdir()] == ["mine.txt"]


def test_the_folder_of_a_record_is_the_one_it_lies_in(tmp_path):
    assert folder_of(tmp_path / "s.json") == tmp_path
    assert folder_of(tmp_path / "records" / shard_of("s") / "s.json") == tmp_path / "records" / shard_of("s")


class TestTables:
    """When they are written."""

    def test_nothing_new_leaves_them_as_they_are(self, maps, out):
        count_batch([maps], out)
        before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.tsv")}
        count_batch([maps], out, resume=True)
        assert {path.name: path.stat().st_mtime_ns for path in out.glob("*.tsv")} == before
        assert json.loads((out / "run.json").read_text())["files"].keys() == before.keys()

    @pytest.mark.parametrize("change", ["scan", "table", "less", "failed"])
    def test_whatever_changes_makes_them_again(self, maps, out, tmp_path, change):
        if change == "failed":
            break_one(maps)
        count_batch([maps], out)
        if change == "scan":
            save(maps / "s11.nii.gz", np.full((6, 7, 8), 0.5, np.float32))
        if change == "table":
            (out / "lesions.tsv").unlink()
        if change == "less":
            (maps / "s39.nii.gz").unlink()
        if change == "failed":
            save(maps / "s13.nii.gz", np.full((6, 7, 8), 0.5, np.float32))
        count_batch([maps], out, resume=True)
        count_batch([maps], tmp_path / "again")
        assert tables(out) == tables(tmp_path / "again")
