"""Tables for Excel, and what they open with."""

import csv

import numpy as np
import pytest

from lesioncount.cli import main


def counted(tmp_path, *options):
    (tmp_path / "maps").mkdir(exist_ok=True)
    voxels = np.zeros((8, 8, 8), np.float32)
    voxels[1, 1, 1], voxels[5, 5, 5] = 0.9, 0.35
    np.save(tmp_path / "maps" / "müller, anna; 2.npy", voxels)
    np.save(tmp_path / "maps" / "bad.npy", voxels * 9)
    assert main(["count", str(tmp_path / "maps"), "-o", str(tmp_path / "out"), "--quiet", *options]) == 1
    return tmp_path / "out"


def rows(path, delimiter):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_counts_open_with_what_most_people_look_for(tmp_path):
    table = (counted(tmp_path) / "counts.tsv").read_text("utf-8").splitlines()
    columns = table[0].split("\t")
    assert columns[:4] == ["scan", "count", "from", "to"]
    assert columns[-5:] == ["p_0", "p_1", "p_2", "p_3", "p_4plus"]
    assert [line.split("\t")[1:4] for line in table[1:]] == [["n/a"] * 3, ["1", "0", "2"]]


@pytest.mark.parametrize(("separator", "delimiter", "mean"), [("comma", ",", "1.25"), ("semicolon", ";", "1,25")])
def test_excel_reads_names_and_decimals(tmp_path, separator, delimiter, mean):
    out = counted(tmp_path, "--csv", separator)
    assert (out / "counts.csv").read_bytes().startswith(b"\xef\xbb\xbfscan" + delimiter.encode() + b"count")
    bad, good = rows(out / "counts.csv", delimiter)
    assert good["path"] == "müller, anna; 2.npy"
    assert (good["count"], good["from"], good["to"], good["count_mean"]) == ("1", "0", "2", mean)
    assert (bad["count"], bad["count_mean"]) == ("", "")
    assert "values span" in bad["error"]
    assert len(rows(out / "lesions.csv", delimiter)) == 2


def test_a_run_without_it_removes_what_is_no_longer_so(tmp_path):
    out = counted(tmp_path, "--csv", "comma")
    counted(tmp_path, "--overwrite")
    assert not (out / "counts.csv").exists()
