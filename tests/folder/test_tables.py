"""Tables as text, also for those who open them in a spreadsheet."""

import io
import json

import numpy as np
import pytest

from lesioncount.assess.beside_truth import TruthOptions, compare
from lesioncount.assess.truth import read_truth_table
from lesioncount.errors import TruthError
from lesioncount.folder.tables import to_tsv, write_tsv
from lesioncount.results.results import read_countable
from lesioncount.runs import count_batch


def cell(value):
    return to_tsv(["a"], [{"a": value}]).splitlines()[1]


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "-1.5x", "--1", "+", "=", "\t=1", "\r@a"]
)
def test_formulas_become_text(text):
    assert cell(text) == "'" + text.strip()


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1.5, "-1.5"), (-3, "-3"), ("-1.5", "-1.5"), ("+2e-3", "+2e-3"), (float("nan"), "n/a"), (None, "n/a"),
     ("n/a", "n/a"), ("sub-01", "sub-01"), ("a=1", "a=1"), ("'x", "'x"), ("", "n/a")],
)  # fmt: skip
def test_numbers_and_other_text_stay(value, text):
    assert cell(value) == text


@pytest.fixture
def maps(tmp_path, rng):
    """Two scans of the same file name, and one that looks like a formula."""
    for name in ("a/map", "b/map", "=1"):
        (tmp_path / "maps" / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "maps" / f"{name}.npy", (rng.random((5, 6, 7)) ** 6).astype(np.float32))
    count_batch([tmp_path / "maps"], tmp_path / "out")
    return tmp_path


def compared(maps, text, **options):
    (maps / "truth.csv").write_text(text)
    return compare(read_countable(maps / "out"), TruthOptions(table=maps / "truth.csv", **options), read_maps=False)


def test_json_keeps_the_real_name_of_a_scan(maps):
    rows = [line.split("\t") for line in (maps / "out" / "counts.tsv").read_text().splitlines()]
    assert {(row[0], row[rows[0].index("path")]) for row in rows} >= {("'=1", "'=1.npy")}
    assert json.loads((maps / "out" / "=1.json").read_text())["scan"] == "=1"


@pytest.mark.parametrize("name", ["=1", "'=1"])
def test_truth_tables_may_have_either_name(maps, name):
    found = compared(maps, f"scan,count\na__map,1\nb__map,2\n{name},3\n")
    assert {scan.name: truth.count for scan, truth in zip(found.scans, found.truths, strict=True)}["=1"] == 3


def test_one_row_does_not_serve_two_scans(maps):
    with pytest.raises(TruthError, match=r"'map' would serve both (a__map and b__map|b__map and a__map)"):
        compared(maps, "scan,count\nmap,1\n=1,3\n")


def test_a_column_that_is_there_twice_is_named(maps):
    for header in ("scan,count,count", "scan,scan,count"):
        with pytest.raises(TruthError, match=r"more than one column '(count|scan)'"):
            compared(maps, f"{header}\na__map,1,1\n")
    rows = "a__map,1,p,q\nb__map,1,p,q\n=1,1,p,q\n"
    with pytest.raises(TruthError, match="more than one column 'patient'"):
        compared(maps, f"scan,count,patient,patient\n{rows}", group_by="patient")
    assert compared(maps, f"scan,count,note,note\n{rows}").scans, "other columns may be there twice"


def test_groups_of_scans_that_are_known_by_the_name_of_their_file(tmp_path, rng):
    (tmp_path / "maps").mkdir()
    for name in ("sub 0", "sub 1"):
        np.save(tmp_path / "maps" / f"{name}.npy", (rng.random((5, 6, 7)) ** 6).astype(np.float32))
    count_batch([tmp_path / "maps"], tmp_path / "out")
    found = compared(tmp_path, "scan,count,patient\nsub 0,1,p\nsub 1,2,q\n", group_by="patient")
    assert found.groups == ("p", "q")


def test_a_table_tells_its_columns(tmp_path):
    (tmp_path / "t.tsv").write_text("scan\tcount\tpatient\ns\t1\tp\n")
    assert read_truth_table(tmp_path / "t.tsv").columns == ("scan", "count", "patient")


class TestRowByRow:
    """Tables that are written while rows come."""

    def written(self, rows, optional):
        file, calls = io.StringIO(), []

        def all_rows():
            calls.append(1)
            return iter(rows)

        write_tsv(file, ["a", "b", "c"], all_rows, optional=optional)
        return file.getvalue(), len(calls)

    def test_optional_columns_are_there_if_any_row_has_them(self):
        rows = [{"a": 1}, {"a": 2, "c": 5}, {"a": 3}]
        text, n_passes = self.written(rows, ["b", "c"])
        assert text == to_tsv(["a", "c"], rows)
        assert n_passes == 2

    def test_columns_that_must_be_there_are_there_without_rows(self):
        assert self.written([], ["b"]) == ("a\tc\n", 1)
