"""Where candidates lie, and how many lesions that makes in each region."""

import json
import pickle

import numpy as np
import pytest
from scipy import ndimage

import lesioncount as lc
from lesioncount.errors import RegionError, RunsNotKeptError, ShapeError, SpacingError
from lesioncount.regions import Regions, Within
from lesioncount.streaming import StreamingCounter


@pytest.fixture
def hills(rng):
    """A map with candidates of many sizes everywhere."""
    p = ndimage.gaussian_filter(rng.random((24, 30, 20)), 1.2).astype(np.float32)
    return np.clip((p - p.min()) / np.ptp(p) * 2.4 - 1.3, 0, 1)


@pytest.fixture
def quarters():
    labels = np.zeros((24, 30, 20), dtype=np.int16)
    labels[2:12, :15], labels[2:12, 15:], labels[12:, :15], labels[12:, 15:] = 1, 2, 3, 4
    return labels


NAMES = {1: "front", 2: "back", 3: "front", 4: "rear end"}


def test_regions_hold_the_candidates_whose_peaks_lie_in_them(hills, quarters):
    result = lc.count_lesions(hills, regions=quarters, region_names=NAMES)
    assert list(result.regions) == ["front", "back", "rear end", "outside"]
    at_peaks = [quarters[tuple(index)] for index in result.candidates.peak_index]
    for name, labels in {"front": (1, 3), "back": (2,), "rear end": (4,), "outside": (0,)}.items():
        expected = [p for p, label in zip(result.existence, at_peaks, strict=True) if label in labels]
        assert len(expected) > 1
        assert result.regions[name] == lc.PoissonBinomial(expected)


def test_regions_add_up_to_the_whole_count(hills, quarters):
    for protocol in ("paper", "peaks"):
        result = lc.count_lesions(hills, protocol=protocol, regions=quarters, region_names=NAMES)
        assert sum(result.regions.values()) == result.distribution


def test_labels_without_names_are_called_by_their_number_and_told(hills, quarters):
    assert list(lc.count_lesions(hills, regions=quarters).regions) == ["1", "2", "3", "4", "outside"]
    places = lc.count_lesions(hills, regions=quarters, region_names={4: "rear", 2: "3"}).places
    assert places.names == ("rear", "3", "1", "label 3", "outside")
    assert places.unnamed == ("1", "label 3")


def test_names_of_the_table_are_regions_also_where_no_candidate_is():
    result = lc.count_lesions(np.zeros((4, 5)), regions=np.ones((4, 5), bool), region_names={1: "a", 7: "b"})
    assert {name: count.pmf().tolist() for name, count in result.regions.items()} == {
        "a": [1.0], "b": [1.0], "outside": [1.0],
    }  # fmt: skip


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("spacing", [(1, 1, 1), (0.5, 1.2, 3.0)])
def test_distances_are_those_of_a_distance_transform(hills, quarters, spacing, order):
    labels = np.asarray(quarters, order=order)
    asked = [Within("near", ("front", "back"), 4.0), Within("touching", ("rear end",), 1.2)]
    result = lc.count_lesions(hills, regions=labels, region_names=NAMES, within=asked, spacing_mm=spacing)
    label_map = result.candidates.label_map()
    for one, found in zip(asked, result.places.distance_mm, strict=True):
        inside = np.isin(quarters, [label for label, name in NAMES.items() if name in one.regions])
        away = ndimage.distance_transform_edt(~inside, sampling=spacing)
        nearest = ndimage.minimum(away, label_map, np.arange(1, len(result.candidates) + 1))
        np.testing.assert_allclose(found, np.where(nearest <= one.distance_mm * 1.0001, nearest, np.inf))
        assert 0 < np.isfinite(found).sum() < len(found)
        assert result.regions[one.name] == lc.PoissonBinomial(result.existence[np.isfinite(found)])


def test_distances_to_many_labels_are_those_to_the_nearest(hills):
    labels = np.zeros(hills.shape, dtype=np.uint16)
    labels[5, :, 3] = np.arange(1000, 1030)
    names = dict.fromkeys(range(1000, 1030), "line")
    result = lc.count_lesions(hills, regions=labels, region_names=names, within="line <= 3mm", spacing_mm=(1, 2, 1))
    away = ndimage.distance_transform_edt(labels == 0, sampling=(1, 2, 1))
    nearest = ndimage.minimum(away, result.candidates.label_map(), np.arange(1, len(result.candidates) + 1))
    np.testing.assert_allclose(result.places.distance_mm[0], np.where(nearest <= 3, nearest, np.inf))


def test_far_distances_are_found_too():
    p = np.zeros((30, 40, 20), dtype=np.float32)
    p[2:20, 3:6, 4:9], p[25, 35, 15], p[1, 38, 1] = 0.9, 0.8, 0.3
    labels = np.zeros(p.shape, dtype=np.uint8)
    labels[10, 20, 10] = 1
    result = lc.count_lesions(p, regions=labels, within="near = 1 <= 29.5mm", spacing_mm=(1, 1, 2))
    expected = [np.sqrt(9**2 + 18**2 + 18**2), np.sqrt(15**2 + 4**2), np.sqrt(15**2 + 15**2 + 10**2)]
    np.testing.assert_allclose(result.places.distance_mm[0], expected)


def test_pictures_have_regions_too():
    p = np.array([[0.9, 0.0, 0.3], [0.0, 0.0, 0.0], [0.0, 0.2, 0.0]])
    labels = np.array([[1, 0, 2], [0, 0, 2], [0, 2, 2]])
    result = lc.count_lesions(p, regions=labels, within="near = 1 <= 2.5mm", spacing_mm=(1, 1.25, 5), connectivity=4)
    assert result.places.region_names == ["1", "2", "2"]
    assert result.places.distance_mm.tolist() == [[0.0, 2.5, np.sqrt(1.25**2 + 4)]]


def test_a_map_without_candidates_has_regions_without_lesions(quarters):
    result = lc.count_lesions(
        np.zeros(quarters.shape), regions=quarters, region_names=NAMES, within="x = front <= 1mm", spacing_mm=(1, 1, 1)
    )
    assert [count.mean() for count in result.regions.values()] == [0.0] * 5


def test_results_with_regions_pickle(hills, quarters):
    result = lc.count_lesions(
        hills, regions=quarters, region_names=NAMES, within="near = back <= 1mm", spacing_mm=(1, 1, 1)
    )
    assert result.regions["front"].mean() > 0
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own object
    assert dict(again.regions) == dict(result.regions)
    assert again.ask("near >= 1") == result.ask("near >= 1")


def test_regions_may_be_asked_for_later(hills, quarters):
    result = lc.count_lesions(hills, spacing_mm=(1, 1, 1))
    assert len(result.regions) == 0
    later = result.by_region(quarters, NAMES, "near = front <= 2mm")
    at_once = lc.count_lesions(
        hills, regions=quarters, region_names=NAMES, within=["near = front <= 2mm"], spacing_mm=(1, 1, 1)
    ).regions
    assert dict(later) == dict(at_once)
    assert dict(result.by_region(Regions(quarters, NAMES))) == {name: later[name] for name in list(later)[:-1]}
    assert repr(later).startswith("RegionCounts(front: ")


def test_a_streamed_map_has_the_same_regions(hills, quarters):
    counter = StreamingCounter(hills.shape[:-1], hills.dtype, axis=-1, spacing_mm=(1, 1, 1), keep_runs=True)
    counter.push(hills)
    streamed = counter.result().by_region(quarters, NAMES, "near = front <= 2mm")
    whole = lc.count_lesions(hills, spacing_mm=(1, 1, 1)).by_region(quarters, NAMES, "near = front <= 2mm")
    assert dict(streamed) == dict(whole)
    forgetful = StreamingCounter(hills.shape[:-1], hills.dtype, axis=-1, spacing_mm=(1, 1, 1))
    forgetful.push(hills)
    assert dict(forgetful.result().by_region(quarters, NAMES)) == {n: whole[n] for n in list(whole)[:-1]}
    with pytest.raises(RunsNotKeptError, match="keep_runs=True"):
        forgetful.result().by_region(quarters, NAMES, "near = front <= 2mm")


def test_results_tell_of_their_regions(hills, quarters):
    result = lc.count_lesions(
        hills, regions=quarters, region_names=NAMES, within="near = back <= 1mm", spacing_mm=(1, 1, 1)
    )
    assert f"where       front {result.regions['front'].mean():.2f}, near " in str(result)
    assert json.loads(result.to_json())["regions"]["back"]["pmf"] == result.regions["back"].pmf().tolist()
    frame = result.to_dataframe()
    assert frame["region"].tolist() == result.places.region_names
    assert frame["within"].isin(["near", None]).all()
    assert set(frame["within_mm"].dropna()) == {"0", "1"}
    plain = lc.count_lesions(hills)
    assert "regions" not in plain.to_dict()
    assert "region" not in plain.to_dataframe()
    assert "where" not in str(plain)
    nothing = lc.count_lesions(np.zeros(quarters.shape), regions=quarters)
    assert str(nothing).endswith("where       in no region")


def test_only_the_fullest_regions_are_printed(hills):
    result = lc.count_lesions(hills, regions=np.arange(hills.size).reshape(hills.shape))
    assert " more regions" in str(result)


def test_labels_of_images_and_floats_are_whole_numbers(hills, quarters):
    as_floats = quarters.astype(np.float64)
    as_floats[0, 0, 0] = np.nan
    assert dict(lc.count_lesions(hills, regions=as_floats).regions) == dict(
        lc.count_lesions(hills, regions=quarters).regions
    )
    with pytest.raises(RegionError, match=r"whole numbers, one for each region, but they hold 0.5, 1.5\."):
        Regions(quarters * 0.5)
    with pytest.raises(RegionError, match="but they hold inf"):
        Regions(np.full((3, 3), np.inf))
    with pytest.raises(RegionError, match="but their dtype is <U1"):
        Regions(np.full((3, 3), "a"))


def test_regions_that_do_not_fit_are_refused(hills, quarters):
    with pytest.raises(ShapeError, match=r"Expected regions of the map's shape \(24, 30, 20\)"):
        lc.count_lesions(hills, regions=quarters[1:])
    with pytest.raises(ShapeError, match="two or three axes"):
        Regions(np.zeros(3, int))
    with pytest.raises(SpacingError, match="needs the voxel size"):
        lc.count_lesions(hills, regions=quarters, within="1 <= 3mm")
    with pytest.raises(RegionError, match="pass regions="):
        lc.count_lesions(hills, region_names=NAMES)
    with pytest.raises(RegionError, match="pass regions="):
        lc.count_lesions(hills, within="1 <= 3mm")


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["a"], "Expected names of regions by label"),
        ({"1": "a"}, "labels of regions to be whole numbers, but got '1'"),
        ({True: "a"}, "whole numbers, but got True"),
        ({1: ""}, "Expected the name of a region, but got ''"),
        ({1: None}, "Expected the name of a region, but got None"),
        ({1: "a\tb"}, "printable characters"),
        ({1: "a" * 300}, "at most 255"),
        ({1: "Outside"}, "cannot be called 'Outside'"),
        ({1: "count"}, "cannot be called 'count'"),
    ],
)
def test_names_that_are_none_are_refused(names, why):
    with pytest.raises(RegionError, match=why):
        Regions(np.zeros((3, 3), int), names)


def test_label_0_may_be_called_anything():
    assert Regions(np.zeros((3, 3), int), {0: "outside", np.int16(1): " a "}).names == {1: "a"}


def test_distances_to_what_is_not_there_are_refused(hills, quarters):
    def count(within):
        return lc.count_lesions(hills, regions=quarters, region_names=NAMES, within=within, spacing_mm=(1, 1, 1))

    with pytest.raises(RegionError, match=r"no region 'frnot'. There are front, back, rear end. Asked for: 'x = frnot"):
        count("x = frnot <= 3mm")
    with pytest.raises(RegionError, match="no region '17'"):
        count("17 <= 3mm")
    with pytest.raises(RegionError, match="'back' is a region already"):
        count("back = front <= 3mm")
    assert "pv" in count("pv = front <= 3mm").regions


def test_a_region_that_is_not_there_names_those_that_are(hills, quarters):
    with pytest.raises(KeyError, match=r"no region 'fornt'. There are front, back"):
        lc.count_lesions(hills, regions=quarters, region_names=NAMES).regions["fornt"]
    with pytest.raises(KeyError, match="Count with regions="):
        lc.count_lesions(hills).regions["front"]
    labels = np.arange(hills.size).reshape(hills.shape)
    with pytest.raises(KeyError, match=r"and \d+ more"):
        lc.count_lesions(hills, regions=labels).regions["front"]


def test_nothing_is_written_to_and_regions_may_be_read_only(hills, quarters):
    quarters.flags.writeable = False
    names = dict(NAMES)
    lc.count_lesions(hills, regions=quarters, region_names=names, within="front <= 3mm", spacing_mm=(1, 1, 1))
    assert names == NAMES
    assert repr(Regions(quarters, names)) == "Regions(3 names, shape (24, 30, 20), 0 within)"
