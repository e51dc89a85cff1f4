"""Lesions through time: who is who, where lesions split, merge, touch, vanish and come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from strategies import maps

from lesioncount.candidates import find_candidates
from lesioncount.changes.lineages import Lineages


def found(*boxes, shape=(20, 20, 20), candidates="regions", **options):
    """Candidates of a map with boxes of .5, and one voxel of .9 in each, at its first corner."""
    probabilities = np.zeros(shape, dtype=np.float32)
    for box in boxes:
        where = tuple(slice(begin, end) for begin, end in box)
        probabilities[where] = 0.5
        probabilities[tuple(part.start for part in where)] = 0.9
    return find_candidates(probabilities, candidates=candidates, warn=False, **options)


def numbers(lineages):
    return [one.tolist() for one in lineages.of]


LEFT, RIGHT, ACROSS = ((2, 8), (2, 6), (2, 6)), ((11, 17), (2, 6), (2, 6)), ((2, 17), (2, 6), (2, 6))
FAR = ((2, 5), (15, 18), (15, 18))


def test_what_stays_has_one_number():
    lineages = Lineages.follow([found(LEFT, FAR), found(LEFT, FAR)], 2.0)
    assert numbers(lineages) == [[1, 2], [1, 2]]
    assert len(lineages) == 2


def test_what_comes_and_what_goes_have_numbers_of_their_own():
    assert numbers(Lineages.follow([found(LEFT), found(FAR)], 2.0)) == [[1], [2]]


def test_a_lesion_that_splits_stays_one():
    assert numbers(Lineages.follow([found(ACROSS), found(LEFT, RIGHT)], 0.0)) == [[1], [1, 1]]


def test_two_lesions_that_merge_stay_one():
    assert numbers(Lineages.follow([found(LEFT, RIGHT), found(ACROSS)], 0.0)) == [[1, 1], [1]]


def test_split_merged_and_split_again_through_three_sessions():
    sessions = [found(LEFT, RIGHT, FAR), found(ACROSS), found(LEFT, RIGHT)]
    assert numbers(Lineages.follow(sessions, 2.0)) == [[1, 2, 1], [1], [1, 1]]


def test_what_is_not_there_for_a_session_is_another_lesion_afterwards():
    sessions = [found(LEFT, FAR), found(LEFT), found(LEFT, FAR)]
    assert numbers(Lineages.follow(sessions, 2.0)) == [[1, 2], [1], [1, 3]]


@pytest.mark.parametrize("within_mm", [0.0, 0.9, 1.0])
def test_a_lesion_that_has_moved_is_the_same_within_the_tolerance(within_mm):
    before, after = found(((2, 4), (2, 4), (2, 4))), found(((4, 6), (2, 4), (2, 4)))
    is_same = within_mm >= 1.0
    assert numbers(Lineages.follow([before, after], within_mm)) == ([[1], [1]] if is_same else [[1], [2]])


def test_the_tolerance_is_in_millimetres():
    boxes = ((2, 4), (2, 4), (2, 4)), ((2, 4), (2, 4), (4, 6))
    thick = [found(box, spacing_mm=(1, 1, 3)) for box in boxes]
    assert numbers(Lineages.follow(thick, 2.9)) == [[1], [2]]
    assert numbers(Lineages.follow(thick, 3.0)) == [[1], [1]]


def test_touching_peaks_keep_apart_through_time():
    """Two peaks of one region: each goes on in its own, although the other is within the tolerance."""
    probabilities = np.full((16, 5, 5), 0.3)
    probabilities[3, 2, 2], probabilities[12, 2, 2] = 0.9, 0.8
    sessions = [find_candidates(p, candidates="peaks", warn=False) for p in (probabilities, probabilities * 0.95)]
    assert len(sessions[0]) == 2
    assert numbers(Lineages.follow(sessions, 3.0)) == [[1, 2], [1, 2]]


def test_of_two_that_share_as_much_the_first_is_taken():
    """Three voxels before: one lies on each of two after; the middle one is a lesion of its own."""
    before = found(((5, 8), (5, 6), (5, 6)))
    after = np.zeros((20, 20, 20))
    after[5, 5, 5] = after[7, 5, 5] = 0.5
    assert numbers(Lineages.follow([before, find_candidates(after, warn=False)], 0.0)) == [[1], [1, 1]]


def test_nothing_at_all():
    nothing = found()
    assert numbers(Lineages.follow([nothing, nothing, nothing], 2.0)) == [[], [], []]
    assert len(Lineages.follow([nothing, nothing], 2.0)) == 0
    assert numbers(Lineages.follow([nothing, found(LEFT)], 2.0)) == [[], [1]]
    assert numbers(Lineages.follow([found(LEFT), nothing], 2.0)) == [[1], []]


def test_tens_of_thousands_of_candidates_are_each_followed():
    """The product of the two numbers is more than 32 bits hold."""
    probabilities = np.zeros((74, 74, 74), dtype=np.float32)
    probabilities[::2, ::2, ::2] = 0.5
    candidates = find_candidates(probabilities, warn=False)
    assert len(candidates) ** 2 > 2**31
    lineages = Lineages.follow([candidates, candidates], 0.0)
    for one in lineages.of:
        np.testing.assert_array_equal(one, np.arange(len(candidates)) + 1)


@given(maps(long_sides=(65,)), st.sampled_from(["regions", "peaks"]), st.sampled_from([0.0, 1.0, 2.0]))
def test_a_map_and_itself_have_the_same_lesions(probabilities, candidates, within_mm):
    one = find_candidates(probabilities, candidates=candidates, warn=False)
    expected = np.arange(len(one)) + 1
    for of in Lineages.follow([one, one, one], within_mm).of:
        np.testing.assert_array_equal(of, expected)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]), st.sampled_from([0.02, 0.1, 0.3]))
def test_without_tolerance_lineages_are_those_of_shared_voxels_and_most_votes(seed, n_sessions, density):
    """Brute force: link each with the one that it shares most voxels with, both ways, and take what is connected."""
    rng = np.random.default_rng(seed)
    sessions = [
        find_candidates(np.where(rng.random((7, 8, 9)) < density, 0.5, 0), connectivity="faces", warn=False)
        for _ in range(n_sessions)
    ]
    begins = np.cumsum([0, *map(len, sessions)])
    links = []
    for place in range(n_sessions - 1):
        pair = [sessions[place].label_map(), sessions[place + 1].label_map()]
        for own, other, first, second in ((*pair, 0, 1), (*pair[::-1], 1, 0)):
            for row in range(own.max()):
                votes = np.bincount(other[own == row + 1], minlength=2)[1:]
                if votes.any():
                    links.append((begins[place + first] + row, begins[place + second] + votes.argmax()))
    n = begins[-1]
    rows, columns = np.array(links, dtype=int).reshape(-1, 2).T
    expected = connected_components(coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)), directed=False)[1]
    ours = np.concatenate(Lineages.follow(sessions, 0.0).of)
    assert len(np.unique(ours)) == len(np.unique(expected)) == len(set(zip(ours, expected, strict=True)))
    np.testing.assert_array_equal(np.unique(ours, return_index=True)[1], sorted(np.unique(ours, return_index=True)[1]))
    assert sorted(set(ours.tolist())) == list(range(1, len(set(ours.tolist())) + 1))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 2.5]))
def test_the_order_of_memory_changes_no_lineage(seed, within_mm):
    rng = np.random.default_rng(seed)
    first, second = (np.where(rng.random((6, 7, 8)) < 0.05, 0.5, 0.0) for _ in range(2))
    plain = numbers(Lineages.follow([find_candidates(one, warn=False) for one in (first, second)], within_mm))
    for orders in (("F", "F"), ("C", "F"), ("F", "C")):
        pair = [np.asarray(one, order=order) for one, order in zip((first, second), orders, strict=True)]
        assert numbers(Lineages.follow([find_candidates(one, warn=False) for one in pair], within_mm)) == plain


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 2.0, 3.0]))
def test_single_voxels_go_on_in_the_nearest_within_the_tolerance(seed, within_mm):
    """Two maps of one voxel each side: linked as far as the ball reaches, as a distance transform says."""
    rng = np.random.default_rng(seed)
    first, second = np.zeros((2, 12, 12))
    first[tuple(rng.integers(0, 12, 2))] = second[tuple(rng.integers(0, 12, 2))] = 0.7
    away = ndimage.distance_transform_edt(second == 0)[first > 0].item()
    lineages = Lineages.follow([find_candidates(one, warn=False) for one in (first, second)], within_mm)
    assert (numbers(lineages)[1] == [1]) == (away <= within_mm + 1e-6)
