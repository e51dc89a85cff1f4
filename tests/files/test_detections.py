"""Tables of detectors as their tools write them → candidates of each scan."""

import gzip
import json

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import MapFileError

LUNA = "seriesuid,coordX,coordY,coordZ,probability\na,1,2,3,0.5\nb,4,5,6,0.25\na,7,8,9,0.125\n"
COCO = [
    {"image_id": 7, "category_id": 1, "bbox": [10, 20, 4, 6], "score": 0.5},
    {
        "image_id": 8,
        "category_id": 2,
        "bbox": [1, 2, 4, 6],
        "score": 0.25,
        "segmentation": {"counts": "x", "size": [1, 1]},
    },
]
MONAI = {"validation": [
    {"image": "a/ct.nii.gz", "box": [[1, 2, 3, 4, 5, 6]], "label": [0], "score": [0.5]},
    {"image": "b/ct.nii.gz", "box": [], "label": [], "score": []},
]}  # fmt: skip
NNDETECTION = {"1": {"score": 0.5, "label": 0, "box": [1, 2, 3, 4, 5, 9]}}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 8], [0, 8], [0, 0]]]}
CELL = {
    "objectType": "cell",
    "measurements": {"Detection probability": 0.75, "Area": 3.0},
    "classification": {"name": "Tumor"},
}
GEOJSON = {"type": "FeatureCollection", "features": [
    {"type": "Feature", "geometry": SQUARE, "properties": CELL},
    {"type": "Feature", "geometry": SQUARE, "properties": {"objectType": "annotation"}},
]}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def read_it(name, content, **how):
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        found = lc.read_candidates(path, **how)
        return {
            scan: {name: column.tolist() for name, column in table.columns.items()} for scan, table in found.items()
        }

    return read_it


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.tsv"])
def test_luna16_has_coordinates_of_itk(read, name):
    text = LUNA.replace(",", "\t") if name.endswith(".tsv") else LUNA
    assert read(name, text) == {
        "a": {"peak": [0.5, 0.125], "x_mm": [-1, -7], "y_mm": [-2, -8], "z_mm": [3, 9]},
        "b": {"peak": [0.25], "x_mm": [-4], "y_mm": [-5], "z_mm": [6]},
    }
    assert read(name, text, coordinates="ras")["b"]["x_mm"] == [4]


def test_coco_boxes_are_in_pixels(read):
    found = read("coco.json", COCO, classes=["1", "2"])
    assert found["7"] == {"peak": [0.5], "x_px": [11.5], "y_px": [22.5], "dx_px": [4], "dy_px": [6]}
    whole = {
        "images": [{"id": 7, "file_name": "leaf.png"}, {"id": 9, "file_name": "bare.png"}],
        "annotations": COCO[:1], "categories": [{"id": 1, "name": "rust"}],
    }  # fmt: skip
    found = read("whole.json", whole, classes="rust")
    assert {scan: table["peak"] for scan, table in found.items()} == {"leaf.png": [0.5], "bare.png": []}


def test_monai_boxes_are_middles_and_sides(read):
    found = read("monai.json", MONAI)
    assert found["a/ct.nii.gz"] == {
        "peak": [0.5], "x_mm": [-1], "y_mm": [-2], "z_mm": [3], "dx_mm": [4], "dy_mm": [5], "dz_mm": [6],
    }  # fmt: skip
    assert found["b/ct.nii.gz"]["peak"] == []


def test_nndetection_has_axes_of_arrays(read):
    assert read("case_7_boxes.json", NNDETECTION) == {
        "case_7": {"peak": [0.5], "x_px": [7], "y_px": [3], "z_px": [2], "dx_px": [4], "dy_px": [2], "dz_px": [2]}
    }


def test_qupath_objects_have_a_measurement_as_score(read):
    assert read("slide.geojson", GEOJSON) == {
        "slide": {"peak": [0.75], "x_px": [1.5], "y_px": [3.5], "dx_px": [4], "dy_px": [8]}
    }
    cell = CELL | {"measurements": [{"name": "mine", "value": 0.5}]}
    own = [{"type": "Feature", "geometry": {"type": "Point", "coordinates": [3, 4]}, "properties": cell}]
    assert read("own.geojson", own, columns={"score": "mine"})["own"]["peak"] == [0.5]
    with pytest.raises(MapFileError, match="Name the one that is the score"):
        read("own.geojson", own)


def test_yolo_boxes_are_parts_of_the_picture(read):
    assert read("leaf.txt", "0 0.5 0.25 0.1 0.2 0.9\n\n", format="yolo")["leaf"]["x_fraction"] == [0.5]
    assert read("bare.txt", "\n")["bare"]["peak"] == []
    with pytest.raises(MapFileError, match="save_conf=True"):
        read("leaf.txt", "0 0.5 0.25 0.1 0.2\n")


def test_columns_may_be_named(read):
    text = "Slide;Reihe;Spalte;Güte\n17;3;4;0,5\n"
    named = {"scan": "Slide", "x": "Spalte", "y": "Reihe", "score": "Güte"}
    with pytest.raises(MapFileError, match="Decimal commas must be points"):
        read("d.csv", text, columns=named, coordinates="pixels")
    assert read("d.csv", text.replace("0,5", "0.5"), columns=named, coordinates="pixels") == {
        "17": {"peak": [0.5], "x_px": [4], "y_px": [3]}
    }
    with pytest.raises(MapFileError, match="Expected one column 'Nothing'"):
        read("d.csv", text, columns={"score": "Nothing"})
    with pytest.raises(MapFileError, match="not for 'colour'"):
        read("d.csv", text, columns={"colour": "Güte"})


def test_units_are_those_of_names_or_must_be_said(read):
    with pytest.raises(MapFileError, match="in which units are x, y"):
        read("d.csv", "image,x,y,score\na,1,2,0.5\n")
    assert read("d.csv", "image,x,y,score\na,1,2,0.5\n", coordinates="pixels")["a"]["x_px"] == [1]
    assert read("d.csv", "Image,Centroid X µm,Centroid Y µm,Score\na,1000,2000,0.5\n")["a"]["x_mm"] == [1]
    boxes = read("d.csv", "image,xmin,ymin,xmax,ymax,conf\na,0,0,4,8,0.5\n", coordinates="pixels")["a"]
    assert boxes == {"peak": [0.5], "x_px": [1.5], "y_px": [3.5], "dx_px": [4], "dy_px": [8]}
    sizes = read("d.csv", "scan,x_mm,y_mm,z_mm,diameter_mm,p,score\na,1,2,3,7,0,0.5\n")["a"]
    assert (sizes["dx_mm"], sizes["dz_mm"]) == ([7], [7])


def test_classes_are_chosen(read):
    text = "scan,score,class\na,0.5,nodule\na,0.25,vessel\n"
    with pytest.raises(MapFileError, match="holds 2 classes: 'nodule', 'vessel'"):
        read("d.csv", text)
    assert read("d.csv", text, classes="nodule") == {"a": {"peak": [0.5]}}
    with pytest.raises(MapFileError, match="has no class 'lesion'"):
        read("d.csv", text, classes="lesion")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.csv", "", "is empty"),
        ("d.csv", "a,b\n1,2\n", "Name it: --columns score=NAME"),
        ("d.csv", "scan,score,prob\na,1,1\n", "several columns that may be the score"),
        ("d.csv", LUNA + "c,1,2,3\n", "about line 5: expected 5 cells"),
        ("d.csv", LUNA + "c,1,2,3,4,5\n", "about line 5: expected 5 cells"),
        ("d.csv", LUNA + "c,1,2,3,n/a\n", "about line 5: expected a number, but got 'n/a'"),
        ("d.csv", LUNA + "c,1,2,3,0_5\n", "about line 5: expected a number"),
        ("d.csv", LUNA + "c,1,2,nan,0.5\n", "a place or a size is not a number"),
        ("d.csv", LUNA + ",1,2,3,0.5\n", "does not say of which scan"),
        ("d.csv", LUNA + "c,1,2,3,17\n", "pass --logits"),
        ("d.json", "{", "cannot be read"),
        ("d.json", "[1]", "not of a kind that is known"),
        ("d.json", {"a": 1}, "not of a kind that is known"),
        ("d.json", [COCO[0] | {"bbox": [1, 2]}], "expected a bbox"),
        ("d.json", [COCO[0] | {"score": "high"}], "entry 0: Expected `float`"),
        ("d.json", [COCO[0], {"image_id": 1}], "entry 1: Object missing required field"),
        ("d.json", {"1": {"score": 0.5, "box": [1]}}, "expected 4 or 6 numbers"),
        ("d.json", {"v": [{"image": "a", "box": [[1, 2, 3, 4, 5, 6]], "score": []}]}, "expected a score and a label"),
        ("d.txt", "0 3 4 1 1 0.5\n", "parts of the picture"),
        ("d.csv.gz", "plain", None),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(read, name, content, words):
    if words is None:
        with pytest.raises(MapFileError):
            read(name, content)
        return
    with pytest.raises(MapFileError, match=words):
        read(name, content)


def test_a_broken_archive_is_refused(tmp_path):
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(LUNA.encode())[:-9])
    (tmp_path / "d.json.gz").write_bytes(b"no archive")
    for name in ("d.csv.gz", "d.json.gz"):
        with pytest.raises(MapFileError, match="cannot be read"):
            lc.read_candidates(tmp_path / name)


@pytest.mark.parametrize(("name", "words"), [("case_boxes.pkl", "json.dump"), ("cells_seg.npy", "tifffile.imwrite")])
def test_pickles_are_never_opened(tmp_path, name, words):
    with pytest.raises(MapFileError, match=words):
        lc.read_candidates(tmp_path / name)


def test_columns_are_read_only_and_of_their_scan_alone(tmp_path):
    (tmp_path / "d.csv").write_text(LUNA)
    table = lc.read_candidates(tmp_path / "d.csv")["a"]
    assert not table.peak.flags.writeable
    assert table.peak.base is None
    assert np.array_equal(lc.count_candidates(table).existence, [0.5, 0.125])
