"""Grids whose axes are not perpendicular, as of a CT with a tilted gantry: one volume and one distance everywhere."""

import csv
import json

import nibabel
import numpy as np
import pytest
from nifti_files import save

import lesioncount as lc
from lesioncount.assess.truth import true_lesions
from lesioncount.cli import main
from lesioncount.files import open_map

# The edges of a voxel are 1, 1 and 2.19 mm long; its volume is 2 mm³, not 2.19.
TILTED = np.array([[1, 0, 0, 0], [0, 1, 0.9, 0], [0, 0, 2, 0], [0, 0, 0, 1.0]])

# A size that two voxels do not reach, though twice the product of sizes does.
SMALLEST_MM3 = 4.2

# Steps between voxels, and how long they are: by sizes alone, both would be 2.41 mm.
NEAR, NEAR_MM = (0, -1, 1), 2.0025
FAR, FAR_MM = (0, 1, 1), 2.7586


@pytest.fixture
def probabilities():
    p = np.zeros((12, 12, 12), np.float32)
    p[2:5, 2, 2:4] = 0.9  # 6 voxels: 12 mm³
    p[8:10, 8, 8] = 0.8  # 2 voxels: 4 mm³
    return p


@pytest.fixture
def path(tmp_path, probabilities):
    save(tmp_path / "before" / "scan.nii.gz", np.zeros_like(probabilities), TILTED)
    return save(tmp_path / "after" / "scan.nii.gz", probabilities, TILTED)


def a_voxel(*steps):
    """A map with a voxel, so many steps from the middle."""
    p = np.zeros((12, 12, 12), np.float32)
    p[tuple(6 + sum(along) for along in zip(*steps, strict=True)) if steps else (6, 6, 6)] = 0.375
    return p


def in_memory(probabilities, affine=TILTED):
    return nibabel.Nifti1Image(probabilities, affine)


def compared(path, out, *options):
    folders = [str(path.parents[1] / when) for when in ("before", "after")]
    assert main(["compare", *folders, "-o", str(out), "--quiet", *options]) == 0
    return json.loads((out / "scan.json").read_text("utf-8"))


def test_a_lesion_has_one_volume(path, probabilities, tmp_path):
    assert main(["count", str(path), "-o", str(tmp_path / "counts"), "--quiet"]) == 0
    with (tmp_path / "counts" / "lesions.tsv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    assert [float(row["volume_mm3"]) for row in rows] == pytest.approx([12, 4])
    record = compared(path, tmp_path / "changes")
    assert [one["volume_mm3"] for one in record["sessions"][1]["lesions"]] == pytest.approx([12, 4])
    changes = lc.compare(in_memory(np.zeros_like(probabilities)), in_memory(probabilities))
    for found in (changes.after.candidates, lc.find_candidates(probabilities, spacing_mm=TILTED[:3, :3], warn=False)):
        assert found.volume_mm3 == pytest.approx([12, 4])


def test_a_smallest_volume_keeps_the_same_lesions_everywhere(path, probabilities, tmp_path):
    protocol = lc.CountingProtocol(min_volume_mm3=SMALLEST_MM3)
    assert len(lc.count_file(path, protocol=protocol).result.candidates) == 1
    record = compared(path, tmp_path / "changes", "--min-size", f"{SMALLEST_MM3}mm3")
    assert len(record["sessions"][1]["lesions"]) == 1
    assert record["pairs"][0]["new"]["component_counts"][0] == 1
    mask = save(tmp_path / "mask.nii.gz", np.where(probabilities > 0, probabilities * 10, 0).astype(np.uint8), TILTED)
    drawn = save(tmp_path / "drawn.nii.gz", (probabilities > 0).astype(np.uint8), TILTED)
    grid = open_map(path).grid
    assert len(true_lesions(drawn, grid, protocol)) == 1
    assert len(true_lesions(mask, grid, protocol, instances=True)) == 1


@pytest.mark.parametrize(("step", "length_mm"), [(NEAR, NEAR_MM), (FAR, FAR_MM)])
def test_a_tolerance_is_a_distance_in_space(step, length_mm):
    maps = in_memory(a_voxel()), in_memory(a_voxel(step))
    within, short = (lc.compare(*maps, tolerance_mm=length_mm + by) for by in (0.01, -0.01))
    assert (within.new.mean(), within.gone.mean()) == (0, 0)
    assert (short.new.mean(), short.gone.mean()) == (0.375, 0.375)
    assert len(within.lineages) == 1
    assert len(short.lineages) == 2


@pytest.mark.parametrize(("step", "length_mm"), [(NEAR, NEAR_MM), (FAR, FAR_MM)])
def test_a_region_by_distance_reaches_as_far_in_space(step, length_mm, tmp_path):
    atlas = (a_voxel(step) > 0).astype(np.uint8)
    path = save(tmp_path / "map.nii.gz", a_voxel(), TILTED)
    labels = save(tmp_path / "atlas.nii.gz", atlas, TILTED)
    for by, expected in ((0.01, 1), (-0.01, 0)):
        within = f"near = 1 <= {length_mm + by}mm"
        from_file = lc.count_file(path, regions=labels, within=within)
        here = lc.count_lesions(in_memory(a_voxel()), regions=lc.Regions(atlas, within=within))
        for result in (from_file.result, here):
            assert result.regions["near"].mean() == 0.375 * expected
