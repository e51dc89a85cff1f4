"""Tables of detections through the engine: names, lists of scans, resuming, members, images and regions."""

import json

import numpy as np
import pytest
from nifti_files import save

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.errors import MapFileError, ProtocolError
from lesioncount.runs import Selection, Settings, count_batch, read_results

TABLE = """scan,x_mm,y_mm,z_mm,diameter_mm,score
a,1,2,3,4,0.9
a,30,2,3,4,0.5
b,1,2,3,4,0.25
a,30,3,3,4,0.4
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "detections.csv"
    path.write_text(TABLE)
    (tmp_path / "scans.tsv").write_text("scan\nb\na\nempty\n")
    return path


def test_a_scan_is_counted_as_its_table_alone(table, tmp_path):
    results = count_batch([table], tmp_path / "out")
    tables = lc.read_candidates(table)
    for scan in results.counted:
        alone = lc.count_candidates(tables[scan.name])
        assert scan.counted.raw.count_mean == pytest.approx(alone.distribution.mean())
        assert np.array_equal(scan.tables[0].peak, alone.existence)
    assert [scan.name for scan in results.scans] == ["a", "b"]
    assert read_results(tmp_path / "out").protocol == lc.CountingProtocol.named("detections")


def test_without_a_list_it_is_said_that_scans_may_be_missing(table, tmp_path, capsys):
    assert main(["count", str(table), "-o", str(tmp_path / "out")]) == 0
    assert "Scans without a detection are not in the table, and cannot be known" in capsys.readouterr().out
    listed = ["--scans", str(tmp_path / "scans.tsv")]
    assert main(["count", str(table), "-o", str(tmp_path / "listed"), *listed]) == 0
    assert "cannot be known" not in capsys.readouterr().out
    found = read_results(tmp_path / "listed")
    assert {scan.name: scan.counted.candidates.n_candidates for scan in found.counted} == {"b": 1, "a": 2, "empty": 0}
    assert found.counted[2].counted.raw.p_0 == 1


def test_scans_that_a_list_does_not_have_are_refused(table, tmp_path):
    (tmp_path / "scans.tsv").write_text("scan\na\nB\n")
    with pytest.raises(MapFileError, match=r"1 scans have detections, but are not in the list .*: b"):
        count_batch([table], tmp_path / "out", selection=Selection(scans=tmp_path / "scans.tsv"))


def test_only_scans_whose_rows_have_changed_are_counted_again(table, tmp_path):
    out = tmp_path / "out"
    first = count_batch([table], out)
    before = {scan.name: (out / f"{scan.name}.json").stat().st_mtime_ns for scan in first.scans}
    table.write_text(TABLE.replace("0.25", "0.75"))
    again = count_batch([table], out, resume=True)
    after = {scan.name: (out / f"{scan.name}.json").stat().st_mtime_ns for scan in again.scans}
    assert [name for name in after if after[name] != before[name]] == ["b"]
    assert json.loads((out / "b.json").read_text())["count"]["count_mean"] == 0.75
    with pytest.raises(MapFileError, match="was made with other settings: scans is given"):
        count_batch([table], out, resume=True, selection=Selection(scans=tmp_path / "scans.tsv"))


def test_stale_records_go_when_all_is_done_again(table, tmp_path):
    out = tmp_path / "out"
    count_batch([table], out)
    table.write_text(TABLE.replace("b,", "c,"))
    count_batch([table], out, overwrite=True)
    assert not (out / "b.json").exists()
    assert (out / "c.json").exists()


def test_many_scans_are_counted_side_by_side_as_alone(tmp_path, rng):
    rows = [f"s{i % 60},{x:.3f},{y:.3f},{z:.3f},{p:.4f}" for i, (x, y, z, p) in enumerate(rng.random((600, 4)))]
    (tmp_path / "d.csv").write_text("\n".join(["scan,x_mm,y_mm,z_mm,score", *rows]))
    alone = count_batch([tmp_path / "d.csv"], tmp_path / "one")
    both = count_batch([tmp_path / "d.csv"], tmp_path / "two", jobs=2)
    assert [scan.counted for scan in both.scans] == [scan.counted for scan in alone.scans]


def test_several_detectors_are_an_ensemble(table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("scan,x_mm,y_mm,z_mm,score\na,1,2,3,0.5\nc,1,2,3,0.5\n")
    results = count_batch([table, other], tmp_path / "out", members=True)
    a, b, c = results.counted
    assert (a.name, b.name, c.name) == ("a", "b", "c")
    assert a.counted.raw.count_mean == pytest.approx((1.4 + 0.5) / 2)
    assert b.counted.raw.count_mean == pytest.approx(0.25 / 2)
    assert a.counted.ensemble.n_members == 2
    with pytest.raises(MapFileError, match="combine them with --members"):
        count_batch([table, other], tmp_path / "mixed")


def test_images_place_detections_and_list_scans(table, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for name in ("a", "b", "none"):
        save(images / f"{name}.nii.gz", np.zeros((40, 20, 20), np.float32), affine=np.diag([1.0, 1, 1, 1]))
    results = count_batch([table], tmp_path / "out", selection=Selection(images=images))
    record = json.loads((tmp_path / "out" / "a.json").read_text())
    assert [(row["peak_i"], row["peak_j"], row["peak_k"]) for row in record["lesions"]] == [(1, 2, 3), (30, 2, 3)]
    assert record["lesions"][0]["bbox"] == "0 0 1 4 5 6"
    assert [scan.name for scan in results.scans] == ["a", "b", "none"]
    assert not results.warnings
    assert not results.failed


def test_detections_outside_of_their_image_fail_with_a_reason(table, tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("a", "b"):
        save(tmp_path / "images" / f"{name}.nii.gz", np.zeros((10, 10, 10), np.float32), affine=np.eye(4))
    results = count_batch([table], tmp_path / "out", selection=Selection(images=tmp_path / "images"))
    assert "2 of 3 detections lie outside" in results.failed[0].error


def test_regions_and_questions_by_position(table, tmp_path, capsys):
    labels = np.zeros((40, 20, 20), np.int16)
    labels[:20], labels[20:] = 1, 2
    save(tmp_path / "atlas.nii.gz", labels, affine=np.eye(4))
    (tmp_path / "names.tsv").write_text("index\tname\n1\tleft\n2\tright\n")
    ask = ["--ask", "left >= 1 and right >= 1", "--ask", "near >= 1"]
    named = ["--region-names", str(tmp_path / "names.tsv"), "--within", "near = left <= 11mm"]
    options = ["--regions", str(tmp_path / "atlas.nii.gz"), *named, *ask]
    assert main(["count", str(table), "-o", str(tmp_path / "out"), *options]) == 0, capsys.readouterr()
    record = json.loads((tmp_path / "out" / "a.json").read_text())
    assert [row["region"] for row in record["lesions"]] == ["left", "right"]
    assert [answer["probability"] for answer in record["answers"]] == pytest.approx([0.45, 0.95])


def test_doubles_are_said(tmp_path):
    rows = [f"a,{i * 20},{j * 2},0,0.5" for i in range(10) for j in range(2)]
    (tmp_path / "d.csv").write_text("\n".join(["scan,x_mm,y_mm,z_mm,score", *rows]))
    results = count_batch([tmp_path / "d.csv"], tmp_path / "out")
    assert results.counted[0].counted.candidates.n_candidates == 10
    assert any("Many detections lie close together" in text for text in results.warnings)


def test_pixels_need_a_size_for_doubles(tmp_path):
    rows = "image,x_px,y_px,score\na,1,2,0.5\na,2,2,0.25\n"
    (tmp_path / "d.csv").write_text(rows)
    results = count_batch([tmp_path / "d.csv"], tmp_path / "out")
    assert any("not known in millimetres" in text for text in results.warnings)
    assert results.counted[0].counted.candidates.n_candidates == 2
    named = lc.CountingProtocol.named("detections")
    results = count_batch([tmp_path / "d.csv"], tmp_path / "mm", settings=Settings(named, spacing_mm=(0.5, 0.5)))
    assert results.counted[0].counted.candidates.n_candidates == 1


def test_what_needs_a_map_is_refused_before_anything_is_counted(table, tmp_path, capsys):
    for option in (["--write", "labels"], ["--write", "existence"], ["--mask", str(table)]):
        assert main(["count", str(table), "-o", str(tmp_path / "out"), *option]) == 2
        assert "needs a map, which a table of detections does not have" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(ProtocolError, match="protocol of detections"):
        count_batch([table], tmp_path / "out", settings=Settings())


def test_tables_and_maps_are_not_mixed(table, tmp_path):
    save(tmp_path / "map.nii.gz", np.zeros((4, 4, 4), np.float32))
    with pytest.raises(MapFileError, match="one kind at a time"):
        count_batch([table, tmp_path / "map.nii.gz"], tmp_path / "out")


def test_a_folder_of_tables_has_a_scan_each(tmp_path):
    folder = tmp_path / "labels"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.txt").write_text("0 0.5 0.5 0.1 0.1 0.75\n")
    assert [scan.name for scan in count_batch([folder], tmp_path / "out").scans] == ["one", "two"]


def test_names_of_scans_lead_nowhere_else(tmp_path):
    (tmp_path / "d.csv").write_text("image,score\n../../x/ct 1.nii.gz,0.5\n/data/y.png,0.5\n")
    results = count_batch([tmp_path / "d.csv"], tmp_path / "out")
    assert [scan.name for scan in results.scans] == ["x__ct%201", "data__y"]


def test_records_of_detections_are_read_with_their_check_sums(table, tmp_path):
    count_batch([table], tmp_path / "out")
    again = count_batch([table], tmp_path / "out", resume=True, parquet=False)
    assert again.counted[0].tables[0].peak.tolist() == [0.9, 0.5]
    assert read_results(tmp_path / "out").total().mean() == pytest.approx(1.65)
