"""Two tables of detections of one patient: what is new, by distance."""

import json

import pytest

from lesioncount.cli import main
from lesioncount.errors import MapFileError
from lesioncount.runs import compare_batch

HEADER = "scan,x_mm,y_mm,z_mm,score\n"


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "before.csv").write_text(HEADER + "a,0,0,0,0.9\na,50,0,0,0.8\nb,0,0,0,0.5\n")
    (tmp_path / "after.csv").write_text(HEADER + "a,3,0,0,0.9\na,0,90,0,0.75\nb,0,0,0,0.5\n")
    return tmp_path / "before.csv", tmp_path / "after.csv"


def test_what_has_no_neighbour_before_is_new(tables, tmp_path):
    results = compare_batch(tables, tmp_path / "out")
    assert not results.failed
    means = {kind: results.distributions(kind) for kind in ("new", "gone", "persisting")}
    first = next(iter(means["new"]))
    assert [means[kind][first].mean() for kind in means] == pytest.approx([0.75, 0.8, 0.9])
    record = json.loads((tmp_path / "out" / "a.json").read_text())
    lineages = [[lesion["lineage"] for lesion in session["lesions"]] for session in record["sessions"]]
    assert lineages == [[1, 2], [1, 3]]
    assert record["pairs"][0]["tolerance_mm"] == 5
    assert record["pairs"][0]["new"]["count"]["cc_count"] == 1


def test_the_tolerance_says_what_is_near(tables, tmp_path):
    out = ["-o", str(tmp_path / "out"), "--tolerance-mm", "2", "--quiet", "--ask", "new >= 2"]
    assert main(["compare", *map(str, tables), *out]) == 0
    record = json.loads((tmp_path / "out" / "a.json").read_text())
    assert record["pairs"][0]["answers"][0]["probability"] == pytest.approx(0.9 * 0.75)


def test_places_must_be_known(tmp_path):
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("scan,score\na,0.5\n")
    results = compare_batch([tmp_path / "one.csv", tmp_path / "two.csv"], tmp_path / "out")
    assert "places in millimetres are needed" in results.failed[0].error


def test_label_maps_need_maps(tables, tmp_path):
    with pytest.raises(MapFileError, match="needs a map"):
        compare_batch(tables, tmp_path / "out", mask=tables[0])


def test_the_page_of_changes_speaks_of_detections(tables, tmp_path):
    pytest.importorskip("jinja2")
    out = tmp_path / "out"
    assert main(["compare", *map(str, tables), "-o", str(out), "--report", "--quiet"]) == 0
    page = (out / "changes.html").read_text()
    assert "Detections at both times are one lesion within 5" in page
    assert "could not be shown" not in page
    assert "can no longer be read" not in page
