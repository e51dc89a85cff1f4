"""What counts as new, gone and persisting, and how often it happens."""

from dataclasses import replace

import numpy as np
import pytest

from lesioncount_reproduction.synthetic.changes import Changes, Fate
from lesioncount_reproduction.synthetic.lattice import REFERENCE_VOXEL_MM3, Lattice
from lesioncount_reproduction.synthetic.lesions import gad_lesions
from lesioncount_reproduction.synthetic.lifetimes import Lesion, Plan, changed, new_lesions, vanishes


@pytest.fixture
def blob(rng):
    return replace(gad_lesions(rng, 1)[0], labelled=True, amplitude=0.8, volume_mm3=15 * REFERENCE_VOXEL_MM3)


@pytest.fixture
def missed(blob):
    return replace(blob, labelled=False)


def kinds(fate):
    return fate.is_new, fate.is_gone, fate.is_persisting


def test_only_what_did_not_exist_before_is_new(blob, missed):
    assert kinds(Fate(1, None, blob)) == (True, False, False)
    assert kinds(Fate(1, missed, blob)) == (False, False, False)
    assert kinds(Fate(1, None, missed)) == (False, False, False)


def test_only_what_does_not_exist_any_more_is_gone(blob, missed):
    assert kinds(Fate(1, blob, None)) == (False, True, False)
    assert kinds(Fate(1, blob, missed)) == (False, False, False)
    assert kinds(Fate(1, missed, None)) == (False, False, False)


def test_what_is_marked_twice_persists_and_may_grow(blob):
    larger = replace(blob, volume_mm3=1.5 * blob.volume_mm3)
    assert kinds(Fate(1, blob, larger)) == (False, False, True)
    assert Fate(1, blob, larger).growth == pytest.approx(1.5)
    assert Fate(1, blob, None).growth is None


def test_missed_lesions_are_counted_only_among_all(blob, missed):
    lattice = Lattice((24, 48, 40))
    places = [replace(one, centre_mm=np.array([0, y, 0])) for one, y in ((blob, -60), (missed, -30), (blob, 0))]
    smaller = replace(places[2], volume_mm3=places[2].volume_mm3 / 2)
    after = {3: smaller, 4: replace(blob, centre_mm=np.array([0, 30, 0])), 5: replace(missed, centre_mm=np.full(3, 9))}
    changes = Changes.between(dict(enumerate(places, start=1)), after, lattice)
    assert changes.counts == {
        "n_before": 2,
        "n_after": 2,
        "n_new": 1,
        "n_gone": 1,
        "n_persisting": 1,
        "n_grown": 0,
        "n_shrunk": 1,
        "n_before_all": 3,
        "n_after_all": 3,
        "n_new_all": 2,
        "n_gone_all": 2,
    }
    assert set(np.unique(changes.new)) == {0, 4}
    assert set(np.unique(changes.gone)) == {0, 1}


def test_of_lesions_that_overlap_each_keeps_its_side(blob):
    lattice = Lattice((24, 48, 40))
    ball = replace(blob, squeeze=np.eye(3), dent=np.zeros(3))
    pair = {n: replace(ball, centre_mm=np.array([0.0, y, 0.0])) for n, y in ((1, -4.0), (2, 4.0))}
    labels = Changes.between({}, pair, lattice).new
    behind, in_front = (np.argwhere(labels == n)[:, 1] for n in (1, 2))
    assert behind.max() < 24 <= in_front.min()
    assert len(behind) == len(in_front)


def test_a_lesion_that_looks_the_same_is_judged_as_before(blob):
    faint = replace(blob, amplitude=0.28)
    judged = [Lesion(1, faint, doubt) for doubt in (0.1, 0.9)]
    assert [one.seen(1.0).blob.labelled for one in judged] == [True, False]
    assert [one.seen(1.5).blob.labelled for one in judged] == [True, True]
    assert [one.seen(0.5).blob.labelled for one in judged] == [False, False]
    assert judged[0].seen(1.5).blob.amplitude == pytest.approx(0.42)


def test_numbers_are_useful_for_counting_changes(rng):
    plans = [Plan.drawn(rng) for _ in range(4000)]
    first = np.array([plan.n_first for plan in plans])
    assert (first.min(), first.max()) == (0, 30)
    assert np.mean(first) == pytest.approx(6.4, abs=0.3)
    new = np.array([len(new_lesions(plan, rng)) for plan in plans])
    assert new.max() in (9, 10)
    assert np.mean(new) == pytest.approx(1.5, abs=0.08)
    assert np.mean(new == 0) == pytest.approx(0.4, abs=0.03)
    gone = np.array([sum(vanishes(plan, rng) for _ in range(plan.n_first)) for plan in plans])
    assert 0.6 < np.mean(gone) < np.mean(new)
    assert not new[[plan.is_stable for plan in plans]].any()
    assert np.mean([plan.is_stable for plan in plans]) == pytest.approx(1 / 7, abs=0.02)


def test_lesions_grow_shrink_or_stay_within_limits(rng, blob):
    active, stable = Plan(5, is_stable=False), Plan(5, is_stable=True)
    factors = np.array([changed(blob, active, rng).volume_mm3 / blob.volume_mm3 for _ in range(3000)])
    assert np.mean(factors > 1.25) == pytest.approx(0.25, abs=0.03)
    assert np.mean(factors < 0.8) == pytest.approx(0.2, abs=0.03)
    kept = [changed(blob, stable, rng).volume_mm3 / blob.volume_mm3 for _ in range(500)]
    assert 0.8 < min(kept) < max(kept) < 1.25
    small, bright = replace(blob, volume_mm3=3 * REFERENCE_VOXEL_MM3), replace(blob, amplitude=1.8)
    assert min(changed(small, active, rng).volume_mm3 for _ in range(50)) == small.volume_mm3
    assert max(changed(bright, active, rng).amplitude for _ in range(50)) == 1.8
