"""A count of 0 that says nothing: an empty or a wrong mask, a map that was scaled twice. Said, and refused of all."""

import csv
import json

import numpy as np
import pytest
from nifti_files import save
from two_kinds import COMPARE, COUNT, KINDS, SHAPE, records

from lesioncount.cli import main
from lesioncount.errors import MapError
from lesioncount.results.count_warnings import ELSEWHERE, EMPTY_MASK, SCALED_TWICE, headline
from lesioncount.runs import count_batch, count_file, read_results

NAMES = ("p1", "p2", "p3")


def masks(folder, kind, **inside):
    """A mask for each map: everything, or what is given for a patient."""
    for time in kind.times:
        for name in NAMES:
            save(folder / time / f"{name}.nii.gz", inside.get(name, np.ones(SHAPE, np.uint8)).astype(np.uint8))
    return folder


def nowhere():
    return np.zeros(SHAPE)


def elsewhere():
    """A mask without a lesion in it: `blobs` leaves the first plane free."""
    inside = np.zeros(SHAPE)
    inside[0] = 1
    return inside


def notes(out, kind):
    with (out / kind.table).open() as table:
        return {row[next(iter(row))]: row.get("notes", "") for row in csv.DictReader(table, delimiter="\t")}


def warned_of(out, name):
    record = json.loads(records(out)[name])
    sessions = record.get("sessions", [record])
    return [headline(warning) for session in sessions for warning in session["warnings"]]


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    return request.param


@pytest.fixture
def maps(tmp_path, kind):
    return kind.cohort(tmp_path / "maps", NAMES)


def of_masks(kind, folder):
    """`compare` finds the mask of each time by the same name: one folder serves both here."""
    return folder / kind.times[0]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def test_an_empty_mask_is_said_in_row_table_and_page(tmp_path, out, capsys):
    maps = COUNT.cohort(tmp_path / "maps", NAMES)
    given = masks(tmp_path / "masks", COUNT, p2=nowhere())
    assert main(["count", str(maps), "-o", str(out), "--mask", str(given), "--report"]) == 0
    assert f"warning: p2: {EMPTY_MASK}" in capsys.readouterr().out
    assert warned_of(out, "p2") == [headline(EMPTY_MASK)]
    assert warned_of(out, "p1") == []
    assert notes(out, COUNT) == {"p1": "n/a", "p2": f"{headline(EMPTY_MASK)}.", "p3": "n/a"}
    page = (out / "report.html").read_text()
    assert EMPTY_MASK.partition(" (")[0] in page


def test_a_patient_whose_mask_is_empty_is_not_compared(tmp_path, out):
    maps = COMPARE.cohort(tmp_path / "maps", NAMES)
    given = of_masks(COMPARE, masks(tmp_path / "masks", COMPARE, p2=nowhere()))
    assert COMPARE.run(maps, out, "--mask", given) == 1
    (failed,) = read_results(out).failed
    assert failed.name == "p2"
    assert failed.error == EMPTY_MASK


def test_all_masks_empty_is_an_error(maps, kind, tmp_path, out, capsys):
    empty = save(tmp_path / "empty.nii.gz", nowhere().astype(np.uint8))
    assert kind.run(maps, out, "--mask", empty) == 2
    said = capsys.readouterr().err
    assert EMPTY_MASK in said
    assert "--overwrite" in said
    assert kind.run(maps, out, "--mask", empty, "--resume") == 2  # nor are they taken the second time
    assert kind.run(maps, out, "--overwrite") == 0


def test_one_scan_with_an_empty_mask_is_an_error(maps, kind, tmp_path, out):
    empty = save(tmp_path / "empty.nii.gz", nowhere().astype(np.uint8))
    assert kind.run(maps, out, "--mask", empty, name="p1") == 2


def test_a_mask_beside_all_lesions_is_said(maps, kind, tmp_path, out):
    given = of_masks(kind, masks(tmp_path / "masks", kind, p3=elsewhere()))
    assert kind.run(maps, out, "--mask", given) == 0
    assert set(warned_of(out, "p3")) == {headline(ELSEWHERE)}
    assert warned_of(out, "p1") == []
    assert headline(ELSEWHERE) in notes(out, kind)["p3"]
    assert "largest value of the whole map is 0." in records(out)["p3"].decode()


def test_masks_beside_all_lesions_of_all_scans_are_an_error_but_not_of_one(maps, kind, tmp_path, out, capsys):
    """A healthy patient may have nothing but false alarms in the skull."""
    mask = save(tmp_path / "elsewhere.nii.gz", elsewhere().astype(np.uint8))
    assert kind.run(maps, tmp_path / "one", "--mask", mask, name="p1") == 0
    assert kind.run(maps, out, "--mask", mask) == 2
    assert f"all 3 {'scans' if kind is COUNT else 'patients'}" in capsys.readouterr().err


def test_a_map_that_is_scaled_twice_is_said(maps, kind, tmp_path, out, capsys):
    """Of one scan it may be so: in a map of percent, a healthy patient may have less than 1 everywhere."""
    assert kind.run(maps, tmp_path / "one", "--scale", "1/255", name="p1") == 0
    assert headline(SCALED_TWICE) in next(iter(notes(tmp_path / "one", kind).values()))
    assert kind.run(maps, out, "--scale", "1/255") == 2
    assert SCALED_TWICE in capsys.readouterr().err
    assert len(records(out)) == 3  # for whoever knows better


def test_low_maps_of_the_right_scale_are_left_in_peace(tmp_path):
    """Above 1 of 255 a map is in 0…255; a map of nothing but 0 is one, whatever its scale."""
    for largest in (0.0, 3.0):
        values = np.zeros(SHAPE, np.float32)
        values[4, 4, 4] = largest
        np.save(tmp_path / "map.npy", values)
        assert count_file(tmp_path / "map.npy", scale=1 / 255).warnings == ()


def test_a_healthy_map_in_its_mask_is_left_in_peace(tmp_path):
    np.save(tmp_path / "map.npy", np.full(SHAPE, 0.03, np.float32))
    np.save(tmp_path / "mask.npy", elsewhere().astype(bool))
    assert count_file(tmp_path / "map.npy", mask=tmp_path / "mask.npy").warnings == ()


def test_lesions_that_are_too_small_are_not_elsewhere(tmp_path):
    values = np.zeros(SHAPE, np.float32)
    values[0, 0, 0] = values[6, 6, 6] = 0.4
    np.save(tmp_path / "map.npy", values)
    np.save(tmp_path / "mask.npy", elsewhere().astype(bool))
    assert count_file(tmp_path / "map.npy", mask=tmp_path / "mask.npy", min_voxels=3).warnings == ()


def test_numbers_outside_of_a_mask_may_be_anything(tmp_path):
    values = np.full(SHAPE, np.nan, np.float32)
    values[0] = 0.02
    np.save(tmp_path / "map.npy", values)
    np.save(tmp_path / "mask.npy", elsewhere().astype(bool))
    assert count_file(tmp_path / "map.npy", mask=tmp_path / "mask.npy").warnings == ()


def test_an_empty_mask_of_a_volume_in_chunks(tmp_path):
    zarr = pytest.importorskip("zarr")
    for name, values in (("map", np.full(SHAPE, 0.3, np.float32)), ("mask", np.zeros(SHAPE, np.uint8))):
        zarr.create_array(str(tmp_path / f"{name}.zarr"), data=values, chunks=(6, 7, 5))
    assert count_file(tmp_path / "map.zarr", mask=tmp_path / "mask.zarr", jobs=2).warnings == (EMPTY_MASK,)
    np.save(tmp_path / "mask.npy", np.zeros(SHAPE, np.uint8))
    with pytest.raises(MapError, match="The mask has no voxel"):
        count_batch([tmp_path / "map.zarr"], tmp_path / "out", mask=tmp_path / "mask.npy", jobs=2)
