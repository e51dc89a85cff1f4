"""Two maps of one patient: what is new, gone and persisting, whatever they are stored as."""

import itertools
import math

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from strategies import maps

from lesioncount.candidates import find_candidates
from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.coupling import DEFAULT_COUPLING, above_floors, only_now
from lesioncount.changes.lesion_changes import changes_between, compare, default_tolerance_mm
from lesioncount.changes.resampling import resampled
from lesioncount.errors import MapError, NonFiniteError, ProbabilityRangeError, ShapeError, UnknownOptionError
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.nearby import Ball, voxel_size_of

COUPLINGS = st.sampled_from([0.0, 0.3, 1.0, 2.0, 5.0])
STRONG = st.sampled_from([1.0, 2.0, 5.0])


@st.composite
def pairs(draw):
    """Two maps of one shape: the second is the first with other heights, and something of its own."""
    first = draw(maps(dtypes=(np.float32, np.float64), long_sides=(65,)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    changed = first * rng.uniform(0, 1, first.shape) ** draw(st.sampled_from([0.1, 1.0, 4.0]))
    second = np.where(rng.random(first.shape) < 0.05, rng.random(first.shape), changed).astype(first.dtype)
    second.flags.writeable = False
    return first, second


def blobs(rng, n=6, shape=(16, 17, 18)):
    """A smooth map with a few lesions."""
    seeds = np.zeros(shape)
    seeds[tuple(rng.integers(2, side - 2, n) for side in shape)] = rng.uniform(20, 60, n)
    return np.clip(ndimage.gaussian_filter(seeds, 1.2), 0, 0.99).astype(np.float32)


def assert_same(one, other, atol=1e-6):
    for name in ("p_new", "p_gone", "p_persisting"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=atol)
    assert [of.tolist() for of in one.lineages.of] == [of.tolist() for of in other.lineages.of]


class TestWhatHoldsForAllMaps:
    @given(pairs(), COUPLINGS, st.sampled_from(["regions", "peaks"]))
    def test_swapping_the_maps_swaps_new_and_gone(self, pair, coupling, candidates):
        forth = compare(*pair, coupling=coupling, candidates=candidates)
        back = compare(*pair[::-1], coupling=coupling, candidates=candidates)
        np.testing.assert_array_equal(forth.p_new, back.p_gone)
        np.testing.assert_array_equal(forth.p_gone, back.p_new)
        for name in ("heights", "others", "index"):
            np.testing.assert_array_equal(getattr(forth.risen, name), getattr(back.fallen, name))

    @given(pairs(), COUPLINGS, st.sampled_from(["regions", "peaks"]))
    def test_new_and_persisting_are_all_lesions_of_the_second_map(self, pair, coupling, candidates):
        changes = compare(*pair, coupling=coupling, candidates=candidates)
        existence = changes.after.existence
        alone = find_candidates(pair[1], candidates=candidates, warn=False)
        np.testing.assert_array_equal(existence, alone.peak_probability - alone.saddle_probability)
        np.testing.assert_allclose(changes.p_new + changes.p_persisting, existence, atol=1e-15)
        assert (changes.p_new >= 0).all()
        assert (changes.p_persisting >= 0).all()
        assert (changes.p_gone <= changes.before.existence).all()
        assert changes.new.mean() + changes.persisting.mean() == pytest.approx(existence.sum())

    @given(maps(long_sides=(65,)), st.sampled_from([1.0, 1.5, 2.0, 10.0]), st.sampled_from(["regions", "peaks"]))
    def test_the_same_map_twice_has_nothing_new_and_nothing_gone(self, probabilities, coupling, candidates):
        changes = compare(probabilities, probabilities, coupling=coupling, candidates=candidates)
        assert changes.new.mean() == changes.gone.mean() == 0
        assert changes.persisting.mean() == pytest.approx(changes.after.existence.sum())

    @given(pairs(), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([1.0, 1.5, 3.0]), STRONG)
    def test_a_tolerance_that_grows_makes_no_more_new_ones(self, pair, tolerance, more, coupling):
        pair = [np.where(one > 0.1, one, 0) for one in pair]  # the floor of a background grows with the tolerance
        near = compare(*pair, tolerance_mm=tolerance, coupling=coupling)
        far = compare(*pair, tolerance_mm=tolerance + more, coupling=coupling)
        assert (far.p_new <= near.p_new + 1e-12).all()
        assert (far.p_gone <= near.p_gone + 1e-12).all()

    @given(pairs())
    def test_more_coupling_makes_fewer_new_and_gone(self, pair):
        found = [compare(*pair, coupling=coupling) for coupling in (0, 0.5, 1, 2, 4, 10)]
        for less, more in itertools.pairwise(found):
            assert (more.p_new <= less.p_new + 1e-12).all()
            assert (more.p_gone <= less.p_gone + 1e-12).all()

    @given(pairs(), st.sampled_from([(1.0, 1.0, 1.0), (0.7, 1.2, 3.0)]), st.sampled_from([0.0, 1.0, 2.0, 3.0]))
    def test_each_probability_is_what_the_filtered_maps_say(self, pair, spacing, tolerance):
        spacing = spacing[: pair[0].ndim]
        reach = [int(tolerance / size) for size in spacing]
        away = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in reach), indexing="ij"), axis=-1) * spacing
        ball = np.sqrt((away**2).sum(axis=-1)) <= tolerance + 1e-6
        changes = compare(*pair, spacing_mm=spacing, tolerance_mm=tolerance)
        for this, other, found in ((pair[1], pair[0], changes.p_new), (pair[0], pair[1], changes.p_gone)):
            candidates = find_candidates(this, warn=False)
            near = ndimage.maximum_filter(other, footprint=ball, mode="constant", cval=0).astype(np.float64)
            around = Ball.of(tolerance, voxel_size_of(find_candidates(this, warn=False, spacing_mm=spacing)))
            floors = [
                CountedMap.of(one, protocol=CountingProtocol()).floor(candidates, around) for one in (this, other)
            ]
            labels = candidates.label_map()
            here, new_here = labels > 0, np.zeros(this.shape)
            heights = this[here].astype(np.float64)
            new_here[here] = only_now(heights, 0.0, above_floors(heights, near[here], *floors), DEFAULT_COUPLING)
            expected = ndimage.maximum(new_here, labels, np.arange(1, len(candidates) + 1)) if len(candidates) else []
            np.testing.assert_allclose(found, expected, atol=1e-12)


class TestHowMapsAreStored:
    @pytest.fixture
    def pair(self, rng):
        return blobs(rng), blobs(rng)

    @pytest.fixture
    def plain(self, pair):
        return compare(*pair)

    @pytest.mark.parametrize("orders", [("F", "F"), ("C", "F"), ("F", "C")])
    def test_the_order_of_memory_changes_nothing(self, pair, plain, orders):
        assert_same(compare(*(np.asarray(one, order=order) for one, order in zip(pair, orders, strict=True))), plain)

    def test_maps_are_not_written_to(self, pair, plain):
        for one in pair:
            one.flags.writeable = False
        inside = np.ones(pair[0].shape, bool)
        inside.flags.writeable = False
        assert_same(compare(*pair, mask=inside), plain)

    def test_lists_are_maps_too(self):
        assert compare([[0.0, 0.9]], [[0.8, 0.0]], tolerance_mm=0).new.mean() == pytest.approx(0.8)

    def test_logits_are_what_they_stand_for(self, pair, plain):
        logits = [np.log(one.astype(np.float64) + 1e-12) - np.log1p(-one.astype(np.float64)) for one in pair]
        assert_same(compare(*logits, logits=True), plain)

    def test_logits_under_a_mask(self, pair):
        inside = np.zeros(pair[0].shape, bool)
        inside[4:, 3:, 2:] = True
        logits = [np.log(one.astype(np.float64) + 1e-12) - np.log1p(-one.astype(np.float64)) for one in pair]
        assert_same(compare(*logits, logits=True, mask=inside), compare(*pair, mask=inside))

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16])
    def test_whole_numbers_with_a_scale(self, pair, dtype):
        stored = [np.round(one * 255).astype(dtype) for one in pair]
        assert_same(compare(*stored, scale=1 / 255), compare(*(one / 255 for one in stored)))

    def test_whole_numbers_with_a_negative_scale(self, pair):
        stored = [-np.round(one * 255).astype(np.int16) for one in pair]
        assert_same(compare(*stored, scale=-1 / 255), compare(*(one / -255.0 for one in stored)))

    def test_masks_are_maps_that_are_sure(self, pair):
        first, second = (one > 0.5 for one in pair)
        changes = compare(first, second, tolerance_mm=0)
        labels = changes.after.candidates.label_map()
        expected = [not first[labels == row + 1].all() for row in range(len(changes.p_new))]
        np.testing.assert_array_equal(changes.p_new, expected)

    def test_a_picture(self):
        first, second = np.zeros((2, 30, 40))
        first[5:8, 5:8], second[5:8, 6:9], second[20, 20] = 0.8, 0.7, 0.6
        changes = compare(first, second, spacing_mm=(1, 1))
        assert changes.new.mean() == pytest.approx(0.6)
        assert changes.gone.mean() == 0
        assert [of.tolist() for of in changes.lineages.of] == [[1], [1, 2]]

    def test_what_is_outside_of_the_mask_may_be_anything(self, pair):
        inside = np.zeros(pair[0].shape, bool)
        inside[3:13, 3:13, 3:13] = True
        odd = [np.where(inside, one, np.nan) for one in pair]
        changes = compare(*odd, mask=inside)
        assert_same(changes, compare(*(np.where(inside, one, 0) for one in pair), mask=inside))
        assert math.isfinite(changes.new.mean())

    def test_nan_without_a_mask_is_refused(self, pair):
        odd = pair[0].copy()
        odd[0, 0, 0] = np.nan
        for one, other in ((odd, pair[1]), (pair[1], odd)):
            with pytest.raises(NonFiniteError, match="NaN"):
                compare(one, other)

    def test_logits_that_nobody_said_are_logits_are_refused(self, pair):
        with pytest.raises(ProbabilityRangeError, match="logits"):
            compare(pair[0], pair[1] * 20 - 10)


class TestTolerance:
    @pytest.mark.parametrize(
        ("spacing", "tolerance"),
        [((1, 1, 1), 2), ((1, 1, 3), 3), ((0.5, 0.5, 0.5), 2), ((1, 1), 2), ((4, 1, 1), 4)],
    )
    def test_is_two_millimetres_or_the_largest_voxel(self, spacing, tolerance):
        assert default_tolerance_mm(spacing) == tolerance
        nothing = np.zeros((5,) * len(spacing))
        assert compare(nothing, nothing, spacing_mm=spacing).tolerance_mm == tolerance

    def test_thick_slices_are_searched_by_millimetres(self):
        before, after = np.zeros((2, 9, 9, 9))
        before[4, 4, 4], after[4, 4, 5] = 0.9, 0.9
        spacing = (1, 1, 3)
        assert compare(before, after, spacing_mm=spacing, tolerance_mm=2).new.mean() == pytest.approx(0.9)
        assert compare(before, after, spacing_mm=spacing, tolerance_mm=3).new.mean() == 0

    @pytest.mark.parametrize("tolerance", [-1, math.nan, math.inf])
    def test_must_be_a_distance(self, tolerance):
        with pytest.raises(MapError, match="at least 0 mm"):
            compare(np.zeros((3, 3)), np.zeros((3, 3)), tolerance_mm=tolerance)


@pytest.mark.parametrize("coupling", [-0.1, 10.1, math.nan, "much", None])
def test_a_coupling_that_is_none_is_refused(coupling):
    with pytest.raises(MapError, match="a coupling from 0"):
        compare(np.zeros((3, 3)), np.zeros((3, 3)), coupling=coupling)


def test_maps_of_two_shapes_are_refused():
    with pytest.raises(ShapeError, match=r"\(3, 4\) and \(4, 3\)"):
        compare(np.zeros((3, 4)), np.zeros((4, 3)))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match="mask"):
        compare(np.zeros((3, 4)), np.zeros((3, 4)), mask=np.ones((4, 3)))


def test_an_option_that_there_is_not_is_refused():
    with pytest.raises(UnknownOptionError, match="tolerance"):
        compare(np.zeros((3, 4)), np.zeros((3, 4)), tolerance=2)


def test_the_protocol_is_that_of_both_maps(rng):
    first, second = blobs(rng), blobs(rng)
    changes = compare(first, second, protocol="peaks", threshold=0.2)
    assert changes.before.protocol == changes.after.protocol == CountingProtocol(0.2, candidates="peaks")
    assert changes.p_new.shape == changes.after.existence.shape


def test_nothing_in_both_maps():
    changes = compare(np.zeros((4, 5, 6)), np.zeros((4, 5, 6)))
    assert [of.mean() for of in (changes.new, changes.gone, changes.persisting)] == [0, 0, 0]
    assert len(changes.lineages) == 0
    assert "candidates   0 before, 0 after" in str(changes)
    assert "searched for within 2 voxels" in str(changes)


def test_printing_names_what_is_most_likely_new():
    before, after = np.zeros((2, 30, 30))
    for place, height in enumerate(np.linspace(0.2, 0.9, 8)):
        after[3 * place, 3] = height
    before[0, 3] = 0.9
    lines = str(compare(before, after)).splitlines()
    assert lines[0].startswith("new ")
    assert [line.split()[0] for line in lines[4:]] == ["#8", "#7", "#6", "#5", "#4"]
    assert repr(compare(before, after)) == "\n".join(lines)


def test_two_that_come_among_twelve_that_stay(rng):
    """Twelve lesions that stay, seen twice with noise, and two that come: .9 and .5."""
    stay, noise = blobs(rng, n=12, shape=(40, 40, 40)), rng.normal(0, 0.02, (2, 40, 40, 40))
    before, after = (np.clip(stay * (1 + one), 0, 1) for one in noise)
    after[5, 35, 20], after[35, 5, 20] = 0.9, 0.5
    changes = compare(before, after, spacing_mm=(1, 1, 1))
    assert changes.new.mean() == pytest.approx(1.4, abs=0.15)
    assert changes.gone.mean() < 0.15


class TestOtherGrids:
    """nibabel images that lie elsewhere are brought to the grid of the second."""

    @pytest.fixture
    def pair(self, rng):
        return blobs(rng), blobs(rng)

    def image(self, values, affine):
        return nibabel.Nifti1Image(values, affine)

    def test_images_on_one_grid_are_as_arrays_with_their_spacing(self, pair):
        affine = np.diag([1.0, 1.0, 2.5, 1.0])
        found = compare(*(self.image(one, affine) for one in pair))
        assert_same(found, compare(*pair, spacing_mm=(1, 1, 2.5)), atol=0)
        assert found.tolerance_mm == 2.5

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_a_flipped_map_is_the_same(self, pair, axis):
        affine = np.eye(4)
        affine[axis, axis], affine[axis, 3] = -1, pair[0].shape[axis] - 1
        found = compare(self.image(np.flip(pair[0], axis), affine), self.image(pair[1], np.eye(4)))
        assert_same(found, compare(*pair, spacing_mm=(1, 1, 1)))

    def test_axes_in_another_order_are_the_same(self, pair):
        moved = self.image(pair[0].transpose(2, 0, 1), np.eye(4)[[1, 2, 0, 3]])
        assert_same(compare(moved, self.image(pair[1], np.eye(4))), compare(*pair, spacing_mm=(1, 1, 1)))

    def test_headers_that_differ_by_rounding_are_one_grid(self, pair):
        affine = np.eye(4)
        affine[:3, 3] = 1e-4
        found = compare(self.image(pair[0], affine), self.image(pair[1], np.eye(4)))
        assert_same(found, compare(*pair, spacing_mm=(1, 1, 1)), atol=0)

    @pytest.mark.parametrize(
        "affine",
        [
            np.diag([2.0, 2.0, 2.0, 1.0]),
            np.diag([0.8, 1.3, 1.1, 1.0]),
            np.array([[1.0, 0, 0, -3.5], [0, 1, 0, 2], [0, 0, 1, 0.5], [0, 0, 0, 1]]),
        ],
    )
    def test_other_voxels_are_as_resampled_by_hand(self, rng, affine):
        first, second = blobs(rng, shape=(20, 16, 17)), blobs(rng)
        by_hand, covered = resampled(first, affine, second.shape, np.eye(4))
        expected = compare(by_hand, second, mask=covered, spacing_mm=(1, 1, 1))
        assert_same(compare(self.image(first, affine), self.image(second, np.eye(4))), expected, atol=0)

    def test_whole_numbers_and_logits_are_resampled_as_probabilities(self, pair):
        affine = np.diag([2.0, 2.0, 2.0, 1.0])
        stored = np.round(pair[0] * 255).astype(np.uint8)
        found = compare(self.image(stored, affine), self.image(np.round(pair[1] * 255).astype(np.uint8), np.eye(4)),
                        scale=1 / 255)  # fmt: skip
        expected = compare(self.image(stored / 255, affine), self.image(np.round(pair[1] * 255) / 255, np.eye(4)))
        assert_same(found, expected)
        logits = [np.log(one.astype(np.float64) + 1e-12) - np.log1p(-one.astype(np.float64)) for one in pair]
        found = compare(self.image(logits[0], affine), self.image(logits[1], np.eye(4)), logits=True)
        assert_same(found, compare(self.image(pair[0], affine), self.image(pair[1], np.eye(4))))

    def test_what_the_first_map_does_not_show_cannot_be_new(self):
        before, after = np.zeros((10, 10, 10), np.float32), np.zeros((20, 10, 10), np.float32)
        after[4, 5, 5], after[15, 5, 5] = 0.9, 0.8
        changes = compare(self.image(before, np.eye(4)), self.image(after, np.eye(4)))
        assert changes.new.mean() == pytest.approx(0.9)
        assert len(changes.after.candidates) == 1

    def test_a_mask_and_the_field_of_view_limit_both(self):
        before, after = np.zeros((10, 10, 10), np.float32), np.zeros((20, 10, 10), np.float32)
        after[2, 5, 5], after[6, 5, 5], after[15, 5, 5] = 0.9, 0.7, 0.8
        inside = np.ones(after.shape)
        inside[:4] = 0
        changes = compare(self.image(before, np.eye(4)), self.image(after, np.eye(4)), mask=inside)
        assert changes.new.mean() == pytest.approx(0.7)

    def test_maps_that_do_not_overlap_are_refused(self, pair):
        far = np.eye(4)
        far[0, 3] = 500
        with pytest.raises(ShapeError, match="do not overlap in space"):
            compare(self.image(pair[0], far), self.image(pair[1], np.eye(4)))

    def test_an_image_and_an_array_must_have_one_shape(self, pair):
        with pytest.raises(ShapeError, match="such as those of nibabel"):
            compare(self.image(pair[0], np.eye(4)), pair[1][1:])
        assert_same(compare(self.image(pair[0], np.eye(4)), pair[1]), compare(*pair), atol=0)


def test_counted_maps_are_compared_without_counting_again(rng):
    protocol = CountingProtocol()
    first, second = blobs(rng), blobs(rng)
    counted = [CountedMap.of(one, protocol=protocol, spacing_mm=(1, 1, 1)) for one in (first, second)]
    assert_same(
        changes_between(*counted, tolerance_mm=None, coupling=1.0),
        compare(first, second, spacing_mm=(1, 1, 1), coupling=1),
    )
