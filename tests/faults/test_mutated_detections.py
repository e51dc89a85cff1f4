"""Damaged tables of detections: a clear error or the right number, and never anything else."""

import json

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import LesionCountError

N_MUTANTS = 300
ROWS = [(f"s{i % 3}", round(7.5 * i, 2), round(3.25 * i, 2), 4.0, (i + 1) / 16) for i in range(12)]

CSV = "scan,x_mm,y_mm,z_mm,score\n" + "\n".join(",".join(map(str, row)) for row in ROWS) + "\n"
LUNA = CSV.replace("scan,x_mm,y_mm,z_mm,score", "seriesuid,coordX,coordY,coordZ,probability").replace(",", "\t")
COCO = json.dumps([{"image_id": s, "bbox": [x, y, 4, 4], "score": p, "category_id": 1} for s, x, y, _, p in ROWS])
MONAI = json.dumps(
    {"validation": [{"image": s, "box": [[x, y, z, 4, 4, 4]], "score": [p], "label": [0]} for s, x, y, z, p in ROWS]}
)
NNDETECTION = json.dumps(
    {str(n): {"score": p, "label": 0, "box": [n, n, n + 4, n + 4, n, n + 4]} for n, (_, _, _, _, p) in enumerate(ROWS)}
)
GEOJSON = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": [x, y]},
                "properties": {"measurements": {"Detection probability": p}},
            }
            for _, x, y, _, p in ROWS
        ],
    }
)
YOLO = "\n".join(f"0 {x / 100:.4f} {y / 100:.4f} 0.04 0.04 {p}" for _, x, y, _, p in ROWS) + "\n"
FORMATS = {
    "csv": ("d.csv", CSV), "luna16": ("d.tsv", LUNA), "coco": ("d.json", COCO), "monai": ("d.json", MONAI),
    "nndetection": ("d_boxes.json", NNDETECTION), "geojson": ("d.geojson", GEOJSON), "yolo": ("d.txt", YOLO),
}  # fmt: skip

ODD = [
    b"\0",
    b"nan",
    b"-1",
    b"1e999",
    b"\xff\xfe",
    b"\n",
    b",",
    b"\t",
    b'"',
    b"{",
    b"]",
    b"null",
    b"9" * 400,
    b"\r",
    b"_",
]


def _mutant(content, rng):
    """With a few bytes cut, doubled, replaced or put in."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data)))
        length = int(rng.integers(1, 30))
        match int(rng.integers(5)):
            case 0:
                del data[at : at + length]
            case 1:
                data[at:at] = data[at : at + length]
            case 2:
                data[at : at + 1] = bytes([int(rng.integers(256))])
            case 3:
                data[at:at] = ODD[int(rng.integers(len(ODD)))]
            case _:
                data = data[: max(at, 1)]
        data = data or bytearray(b" ")
    return bytes(data)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_tables_are_refused_or_read_as_they_are(name, tmp_path):
    file, content = FORMATS[name]
    rng = np.random.default_rng(list(FORMATS).index(name))
    path = tmp_path / file
    n_refused = 0
    for _ in range(N_MUTANTS):
        path.write_bytes(_mutant(content.encode(), rng))
        try:
            found = lc.read_candidates(path, format=None if name == "csv" else name)
        except LesionCountError as error:
            n_refused += file in str(error)  # says which file
            continue
        for table in found.values():
            assert np.isfinite(np.array(table.values)).all()
            assert ((table.peak >= 0) & (table.peak <= 1)).all()
            count = lc.count_candidates(table, merge_within_mm=0)
            assert count.distribution.mean() == pytest.approx(table.peak.sum())
            assert all(str(float(one)) in _numbers(path) for one in table.peak)
    assert 0 < n_refused < N_MUTANTS


def _numbers(path):
    """Every number that stands in a file, in any reading of its text."""
    import re

    text = path.read_bytes().decode("utf-8", "replace")
    return {str(float(one)) for one in re.findall(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", text)}
