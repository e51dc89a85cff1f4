"""Review of what a detector has found: boxes on images, or a list without."""

import gzip

import nibabel as nib
import numpy as np
import pytest
from nifti_files import save
from review_server import Client, serving

from lesioncount.assess.reviews.export import export_reviews
from lesioncount.results.results import read_counted
from lesioncount.runs import Selection, count_batch

TABLE = "scan,x_mm,y_mm,z_mm,diameter_mm,score\na,6,6,6,4,0.9\na,20,6,6,4,0.5\nb,6,6,6,4,0.25\n"


@pytest.fixture
def table(tmp_path):
    (tmp_path / "d.csv").write_text(TABLE)
    for name in "ab":
        save(tmp_path / "images" / f"{name}.nii.gz", np.ones((24, 16, 12), np.float32), np.eye(4))
    return tmp_path / "d.csv"


def _volume(content):
    return np.asarray(nib.Nifti1Image.from_bytes(gzip.decompress(content)).dataobj)


def test_boxes_are_painted_on_images(table, tmp_path):
    count_batch([table], tmp_path / "out", selection=Selection(images=tmp_path / "images"))
    with serving(tmp_path / "out", images=tmp_path / "images", reader="ann") as server:
        client = Client(server.guard.port, server.guard.token)
        _, scan = client.get("/api/scan/0")
        assert [one["peak"] for one in scan["candidates"]] == [[6, 6, 6], [20, 6, 6]]
        labels = _volume(client.raw("GET", "/api/scan/0/labels.nii.gz")[2])
        assert (labels[6, 6, 6], labels[20, 6, 6], labels[0, 0, 0]) == (1, 2, 0)
        assert _volume(client.raw("GET", "/api/scan/0/map.nii.gz")[2])[6, 6, 6] == pytest.approx(0.9, abs=0.01)
        assert client.post("/api/scan/0/decisions", candidate=2, verdict="none", n=1, seconds=1, shown={})[0] == 200
        assert client.post("/api/scan/0/decisions", candidate=1, verdict="lesion", n=1, seconds=1, shown={})[0] == 200
    results = read_counted(tmp_path / "out")
    files, notes = export_reviews(results)
    assert not notes
    accepted = next(name for name in files if name.endswith("_accepted.nii.gz"))
    assert np.unique(np.asarray(nib.load(tmp_path / "out" / accepted).dataobj)).tolist() == [0, 1]


def test_without_images_there_is_a_list(table, tmp_path):
    count_batch([table], tmp_path / "out")
    with serving(tmp_path / "out", reader="ann") as server:
        client = Client(server.guard.port, server.guard.token)
        _, scan = client.get("/api/scan/0")
        assert (scan["shape"], scan["is_list"]) == ([1, 1, 1], True)
        assert [(one["peak"], one["n_voxels"]) for one in scan["candidates"]] == [([0, 0, 0], None)] * 2
        for volume in ("labels", "map"):
            assert _volume(client.raw("GET", f"/api/scan/0/{volume}.nii.gz")[2]).shape == (1, 1, 1)
        _, after = client.post("/api/scan/0/decisions", candidate=2, verdict="lesion", n=1, seconds=1, shown={})
        assert after["decisions"] == {"2": {"verdict": "lesion", "n": 1}}
        assert after["distribution"]["mean"] == pytest.approx(1.9)
    files, notes = export_reviews(read_counted(tmp_path / "out"))
    assert any(name.endswith("lesions.tsv") for name in files)
    assert not notes  # there is nothing to paint label maps on


def test_decisions_are_about_the_same_floor(table, tmp_path):
    from lesioncount import CountingProtocol
    from lesioncount.assess.reviews.scan_review import counting_of
    from lesioncount.runs import Settings

    count_batch([table], tmp_path / "out")
    other = Settings(CountingProtocol(threshold=0.3, candidates="detections"))
    assert counting_of(read_counted(tmp_path / "out").run.settings) != counting_of(other.recorded)
