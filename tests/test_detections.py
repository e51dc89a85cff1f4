"""Candidates of a detector, without a map: doubles, smallest sizes, places, and what they say they cannot do."""

import json

import numpy as np
import pytest
from scipy.spatial import cKDTree

import lesioncount as lc
from lesioncount.detections import highest_of, pairs_within
from lesioncount.errors import MapError, ProtocolError, RunsNotKeptError, ShapeError, SpacingError

FAR_APART = [[0, 0, 0], [50, 0, 0], [0, 50, 0]]


def test_scores_are_counted_as_existence():
    count = lc.count_candidates([0.9, 0.5, 0.25], positions_mm=FAR_APART)
    assert count.existence.tolist() == [0.9, 0.5, 0.25]
    assert count.distribution.mean() == pytest.approx(1.65)
    assert count.distribution.pmf() == pytest.approx(lc.PoissonBinomial([0.9, 0.5, 0.25]).pmf())


def test_nothing_found_counts_zero():
    count = lc.count_candidates([], positions_mm=np.empty((0, 3)), sizes_mm=[])
    assert (len(count.candidates), count.distribution.pmf(0)) == (0, 1)


def test_of_two_that_are_near_the_highest_stays():
    places = [[0, 0, 0], [4, 0, 0], [8, 0, 0]]  # the middle one is near to both, which are not near to each other
    assert lc.count_candidates([0.5, 0.9, 0.6], positions_mm=places).existence.tolist() == [0.9]
    assert lc.count_candidates([0.9, 0.5, 0.6], positions_mm=places).existence.tolist() == [0.9, 0.6]
    assert len(lc.count_candidates([0.9, 0.5, 0.6], positions_mm=places, merge_within_mm=0).candidates) == 3


def test_what_is_near_follows_from_the_smallest_size():
    assert lc.CountingProtocol(candidates="detections").merge_within_mm == 5
    assert lc.CountingProtocol(candidates="detections", min_diameter_mm=3).merge_within_mm == 1.5
    assert lc.CountingProtocol(candidates="detections", min_length_mm=40).merge_within_mm == 10
    assert lc.CountingProtocol().merge_within_mm is None
    with pytest.raises(ProtocolError, match="Only detections are merged"):
        lc.CountingProtocol(merge_within_mm=3)


def test_pairs_are_those_of_a_tree(rng):
    for n, distance in ((0, 1.0), (1, 1.0), (300, 9.0), (300, 0.0)):
        places = rng.uniform(0, 100, (n, 3))
        known = cKDTree(places).query_pairs(distance) if n and distance else set()
        assert {tuple(sorted(pair)) for pair in pairs_within(places, distance).tolist()} == known


def test_merging_is_greedy_from_the_highest_down(rng):
    places, scores = rng.uniform(0, 40, (200, 3)), rng.random(200)
    kept: list[int] = []
    for one in np.argsort(-scores):
        if all(np.linalg.norm(places[one] - places[other]) >= 8 for other in kept):
            kept.append(int(one))
    assert np.flatnonzero(highest_of(pairs_within(places, 8.0), scores)).tolist() == sorted(kept)


def test_a_floor_of_scores_is_the_threshold():
    count = lc.count_candidates([0.9, 0.05, 0.04], positions_mm=FAR_APART, threshold=0.04)
    assert count.existence.tolist() == [0.9, 0.05]
    assert "a score above 0.04" in str(count)


def test_another_floor_is_another_calibration():
    fitted = lc.Calibration(slope=0.5, protocol=lc.CountingProtocol(threshold=0.04, candidates="detections"))
    with pytest.raises(lc.errors.CalibrationError, match=r"a score above 0\.04"):
        fitted.check(lc.CountingProtocol(threshold=0.1, candidates="detections"))


def test_smallest_sizes_need_sizes():
    count = lc.count_candidates([0.9, 0.8], positions_mm=FAR_APART[:2], sizes_mm=[2, 6], min_diameter_mm=3)
    assert (count.existence.tolist(), count.candidates.n_dropped) == ([0.8], 1)
    assert count.candidates.volume_mm3 == pytest.approx([np.pi / 6 * 6**3])
    boxes = lc.count_candidates([0.9, 0.8], sizes_mm=[[1, 1, 9], [2, 2, 2]], min_length_mm=3)
    assert boxes.existence.tolist() == [0.9]
    with pytest.raises(SpacingError, match="unknown for 2 of 2"):
        lc.count_candidates([0.9, 0.8], positions_mm=FAR_APART[:2], min_diameter_mm=3)
    with pytest.raises(ProtocolError, match="no voxels"):
        lc.count_candidates([0.9], min_voxels=3)


def test_pictures_have_areas():
    count = lc.count_candidates([0.9], positions_mm=[[1, 2]], sizes_mm=[[4, 9]])
    assert count.candidates.equivalent_diameter_mm == pytest.approx([6.0])


def test_what_needs_a_map_says_so():
    count = lc.count_candidates([0.9, 0.8], positions_mm=FAR_APART[:2])
    for asked in (count.candidates.label_map, count.candidates.existence_map):
        with pytest.raises(RunsNotKeptError, match="a table of detections does not have"):
            asked()
    with pytest.raises(ProtocolError, match="for tables of scored boxes"):
        lc.count_lesions(np.zeros((4, 4)), protocol="detections")
    with pytest.raises(ProtocolError, match='candidates="detections"'):
        lc.count_candidates([0.9], protocol="paper")


def test_a_count_is_shown_and_written_as_one_of_a_map():
    count = lc.count_candidates([0.9, 0.3], positions_mm=FAR_APART[:2], sizes_mm=[4, 4])
    assert str(count).splitlines()[3] == "  #1        exists with probability 0.9000: 4 mm across, at (0, 0, 0) mm"
    assert json.loads(count.to_json())["lesions"][1]["existence"] == 0.3
    frame = count.to_dataframe()
    assert frame["x_mm"].tolist() == [0, 50]
    assert count.candidates[0].existence == 0.9
    assert "<" in count._repr_html_()
    assert lc.Calibration(slope=2).existence(count.candidates) == pytest.approx([0.81 / 0.82, 0.09 / 0.58])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"scores": [1.5]}, MapError, "scores in \\[0, 1\\]"),
        ({"scores": [np.nan]}, MapError, "scores in"),
        ({"scores": [[0.5]]}, ShapeError, "one dimension"),
        ({"scores": ["a"]}, MapError, "arrays of numbers"),
        ({"scores": [0.5], "positions_mm": [[1, 2, 3], [1, 2, 3]]}, ShapeError, "positions of 1 candidates"),
        ({"scores": [0.5], "positions_mm": [[1, 2, np.inf]]}, MapError, "infinite"),
        ({"scores": [0.5], "sizes_mm": [-1]}, MapError, "negative"),
    ],
)
def test_what_cannot_be_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        lc.count_candidates(arguments.pop("scores"), **arguments)


def test_scores_may_be_logits_or_percent():
    assert lc.count_candidates([0.0], logits=True).existence.tolist() == [0.5]
    assert lc.count_candidates([25.0], scale=0.01).existence.tolist() == [0.25]
