"""The ageing cohort: what a seed promises, and what becomes of lesions, heads and everything else."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from synthetic.test_gad import digest

from lesioncount.errors import CohortError
from lesioncount.learning.scans import count_of
from lesioncount_reproduction.synthetic import AgeingCohort, GadCohort

SMALL = (12, 24, 20)
DIGESTS = """
import sys
from test_gad import digest
from lesioncount_reproduction.synthetic import AgeingCohort
cohort = AgeingCohort(4, seed=7, shape=(12, 24, 20), n_sessions=3)
print(*(digest(cohort[i]) for i in map(int, sys.argv[1:])))
"""


@pytest.fixture(scope="module")
def cohort():
    """Pairs at the shape that sizes were chosen for."""
    return AgeingCohort(40, seed=2)


@pytest.fixture(scope="module")
def pairs(cohort):
    """What has changed in each."""
    return [cohort.changes(*pair) for pair in cohort.pairs]


def lesions_of(cohort, place):
    return cohort.lesions(cohort.visits[place])


def values(labels):
    return set(np.unique(labels).tolist()) - {0}


def test_scans_do_not_depend_on_order_or_on_what_was_made_before():
    cohort, other = (AgeingCohort(4, seed=7, shape=SMALL, n_sessions=3) for _ in range(2))
    forward = [digest(scan) for scan in cohort]
    assert [digest(other[i]) for i in reversed(range(len(other)))] == forward[::-1]
    assert len(set(forward)) == len(cohort) == 12
    assert [digest(scan) for scan in cohort.split("train")] == [
        mine for mine, visit in zip(forward, cohort.visits, strict=True) if visit.split == "train"
    ]


def test_scans_are_the_same_in_another_process():
    cohort = AgeingCohort(4, seed=7, shape=SMALL, n_sessions=3)
    places = [11, 0, 4]
    found_in = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", DIGESTS, *map(str, places)],
        env={**os.environ, "PYTHONPATH": found_in, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "5"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [digest(cohort[i]) for i in places]


def test_a_patient_is_the_same_in_a_larger_cohort():
    few, many = AgeingCohort(2, seed=3, shape=SMALL), AgeingCohort(9, seed=3, shape=SMALL)
    assert [digest(few[i]) for i in range(4)] == [digest(many[i]) for i in range(4)]


def test_the_same_seed_gives_other_people_than_the_other_cohort():
    assert not np.array_equal(AgeingCohort(1, seed=1, shape=SMALL)[0].brain, GadCohort(1, seed=1, shape=SMALL)[0].brain)


def test_what_was_there_and_what_is_new_is_what_is_there(cohort, pairs):
    for (before, after), changes in zip(cohort.pairs, pairs, strict=True):
        n = changes.counts
        assert n["n_before_all"] == len(lesions_of(cohort, before))
        assert n["n_after_all"] == len(lesions_of(cohort, after))
        assert n["n_before_all"] - n["n_gone_all"] + n["n_new_all"] == n["n_after_all"]
        assert n["n_new"] <= n["n_new_all"]
        assert n["n_gone"] <= n["n_gone_all"]
        assert n["n_grown"] + n["n_shrunk"] <= n["n_persisting"] <= min(n["n_before"], n["n_after"])


def test_label_maps_agree_with_counts_and_masks(cohort, pairs):
    for (before, after), changes in zip(cohort.pairs, pairs, strict=True):
        n = changes.counts
        assert (len(values(changes.new)), len(values(changes.gone))) == (n["n_new"], n["n_gone"])
        assert len(values(changes.before) & values(changes.after)) == n["n_persisting"]
        assert not values(changes.new) & lesions_of(cohort, before).keys()
        assert not values(changes.gone) & lesions_of(cohort, after).keys()
        for place, labels in ((before, changes.before), (after, changes.after)):
            marked = [blob for blob in lesions_of(cohort, place).values() if blob.labelled]
            np.testing.assert_array_equal(labels > 0, cohort._mask(marked))
            np.testing.assert_array_equal(labels, cohort.instances(cohort.visits[place]))
            assert len(values(labels)) == len(marked)
        np.testing.assert_array_equal(changes.new > 0, np.isin(changes.after, list(values(changes.new))))
        np.testing.assert_array_equal(changes.gone > 0, np.isin(changes.before, list(values(changes.gone))))


def test_masks_of_a_scan_are_those_of_its_lesions(cohort, pairs):
    place = next(i for i, changes in enumerate(pairs) if changes.counts["n_new"])
    scan = cohort[cohort.pairs[place][1]]
    np.testing.assert_array_equal(scan.lesions, pairs[place].after > 0)
    assert (scan.session, scan.count) == ("02", count_of(scan.lesions))


def test_some_new_lesions_touch_old_ones_and_are_told_apart(pairs):
    merged = [changes for changes in pairs if count_of(changes.after > 0) < changes.counts["n_after"]]
    assert 0.03 < len(merged) / len(pairs) < 0.3
    # At the first session, all are apart.
    assert all(count_of(changes.before > 0) == changes.counts["n_before"] for changes in pairs)


@pytest.mark.parametrize("shape", [SMALL, (8, 12, 10)])
def test_large_voxels_hold_no_two_lesions(shape):
    cohort = AgeingCohort(12, seed=6, shape=shape, n_sessions=4)
    assert all(
        len(values(cohort.instances(visit))) == sum(blob.labelled for blob in cohort.lesions(visit).values())
        for visit in cohort.visits
    )


def test_lesions_that_stay_look_much_as_before(cohort):
    ratios = [
        (now.volume_mm3 / old.volume_mm3, now.amplitude / old.amplitude)
        for before, after in cohort.pairs
        for number, old in lesions_of(cohort, before).items()
        if (now := lesions_of(cohort, after).get(number))
    ]
    volumes, amplitudes = np.array(ratios).T
    assert (volumes.min(), volumes.max()) == (pytest.approx(0.5, abs=0.05), pytest.approx(2, abs=0.05))
    assert np.mean(np.abs(np.log(volumes)) < 0.2) == pytest.approx(0.6, abs=0.1)
    assert np.abs(np.log(amplitudes)).max() < 1
    assert np.median(amplitudes) == pytest.approx(1, abs=0.1)


def test_a_stable_patient_has_the_same_lesions_at_all_sessions():
    cohort = AgeingCohort(20, seed=1, shape=SMALL, n_sessions=3)
    stable = [i for i in range(20) if cohort._stage(cohort.visits[3 * i]).plan.is_stable]
    assert stable
    for patient in stable:
        changes = cohort.changes(3 * patient, 3 * patient + 2).counts
        assert changes["n_new_all"] == changes["n_gone_all"] == changes["n_grown"] == changes["n_shrunk"] == 0


def test_what_has_vanished_is_an_old_lesion(cohort):
    found = 0
    for before, after in cohort.pairs:
        stages = [cohort._stage(cohort.visits[place]) for place in (before, after)]
        gone = {one.number: one.blob for one in stages[0].lesions}.keys() - {one.number for one in stages[1].lesions}
        chronic = {tuple(blob.centre_mm) for blob in stages[1].chronic}
        assert {tuple(one.blob.centre_mm) for one in stages[0].lesions if one.number in gone} <= chronic
        assert len(stages[1].chronic) == len(stages[0].chronic) + len(gone)
        found += len(gone)
    assert found > 10


def test_vessels_stay_and_most_that_looks_like_a_lesion_does(cohort):
    n_before = n_both = 0
    for before, after in cohort.pairs:
        first, second = (cohort._stage(cohort.visits[place]) for place in (before, after))
        assert [tube.radius_mm for tube in first.vessels] == [tube.radius_mm for tube in second.vessels]
        assert [tube.amplitude for tube in first.vessels] != [tube.amplitude for tube in second.vessels]
        old = {tube.radius_mm for tube in first.pieces} | {blob.volume_mm3 for blob in first.mimics}
        now = {tube.radius_mm for tube in second.pieces} | {blob.volume_mm3 for blob in second.mimics}
        n_before, n_both = n_before + len(old), n_both + len(old & now)
    assert 0.7 < n_both / n_before < 1


def test_without_misregistration_the_head_lies_where_it_was():
    cohort = AgeingCohort(6, seed=4, shape=SMALL, misregistration_mm=0)
    for before, after in cohort.pairs:
        first, second = (cohort.content(cohort.visits[place]) for place in (before, after))
        np.testing.assert_array_equal(first.tissues.white, second.tissues.white)
        old, now = lesions_of(cohort, before), lesions_of(cohort, after)
        assert all(np.array_equal(old[number].centre_mm, now[number].centre_mm) for number in old.keys() & now.keys())
        assert not np.array_equal(cohort[before].images, cohort[after].images)  # noise and bias are drawn anew
        assert cohort.changes(before, after).misregistration_mm == 0


def test_misregistration_moves_all_that_the_head_holds_and_changes_nothing_else():
    cohorts = [AgeingCohort(6, seed=4, shape=SMALL, misregistration_mm=mm) for mm in (0, 2)]
    for _, after in cohorts[0].pairs:
        visit = cohorts[0].visits[after]
        still, moved = (one.lesions(visit) for one in cohorts)
        motion = cohorts[1]._motion(visit)
        assert still.keys() == moved.keys()
        for number, blob in still.items():
            np.testing.assert_allclose(moved[number].centre_mm, motion.places(blob.centre_mm))
            assert (moved[number].volume_mm3, moved[number].amplitude) == (blob.volume_mm3, blob.amplitude)
            assert moved[number].labelled == blob.labelled
        first, second = (one.content(visit) for one in cohorts)
        assert not np.array_equal(first.tissues.white, second.tissues.white)
        for tube, other in zip(first.vessels, second.vessels, strict=True):
            np.testing.assert_allclose(other.path_mm, motion.places(tube.path_mm))
        assert cohorts[0][after].affine.tolist() == cohorts[1][after].affine.tolist()
    assert digest(cohorts[0][0]) == digest(cohorts[1][0])  # the first session is what the others are compared with


def test_more_sessions_go_on_from_the_ones_before():
    cohort = AgeingCohort(3, seed=5, shape=SMALL, n_sessions=4)
    assert cohort.pairs == ((0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7), (8, 9), (9, 10), (10, 11))
    assert [digest(cohort[i]) for i in (0, 1)] == [digest(AgeingCohort(3, seed=5, shape=SMALL)[i]) for i in (0, 1)]
    for patient in range(3):
        seen = [lesions_of(cohort, 4 * patient + session).keys() for session in range(4)]
        for number in set().union(*seen):
            there = [number in numbers for numbers in seen]
            assert sum(now != before for before, now in pairwise(there)) <= 1 + (not there[0])
    over_all = cohort.changes(0, 3).counts
    assert over_all["n_before_all"] == cohort.changes(0, 1).counts["n_before_all"]
    assert over_all["n_after_all"] == cohort.changes(2, 3).counts["n_after_all"]


@pytest.mark.parametrize("places", [(1, 0), (0, 0), (0, 3)])
def test_scans_that_are_no_pair_are_refused(places):
    cohort = AgeingCohort(2, seed=5, shape=SMALL)
    with pytest.raises(CohortError, match="two scans of a patient, the earlier one first, but got session 0"):
        cohort.changes(*places)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_patients": 0}, "at least one patient"),
        ({"n_sessions": 0}, "1 to 50 sessions, but got 0"),
        ({"n_sessions": 51}, "but got 51"),
        ({"misregistration_mm": -1}, "a misregistration of 0 to 20 mm, but got -1"),
        ({"misregistration_mm": float("nan")}, "but got nan"),
    ],
)
def test_what_makes_no_cohort_is_refused(options, message):
    with pytest.raises(CohortError, match=message):
        AgeingCohort(**{"n_patients": 1, **options})


def test_a_cohort_says_how_it_is_made():
    cohort = AgeingCohort(3, seed=9, shape=SMALL, n_sessions=3, misregistration_mm=1)
    assert repr(cohort) == "<AgeingCohort of 3 patients, seed 9, shape (12, 24, 20), 1 mm misregistration: 9 scans>"
    assert cohort.provenance["Command"].endswith(
        "--patients 3 --seed 9 --shape 12 24 20 --ageing --sessions 3 --misregistration 1"
    )


def test_a_seed_gives_what_it_always_gave():
    """Results are quoted with the seeds of their scans. Who changes the generator on purpose changes this, too."""
    cohort = AgeingCohort(4, seed=5)
    counts = [cohort.changes(*pair).counts for pair in cohort.pairs]
    assert [(n["n_before"], n["n_after"], n["n_new"], n["n_gone"]) for n in counts] == [
        (7, 4, 1, 4),
        (4, 6, 2, 0),
        (1, 4, 3, 0),
        (9, 7, 0, 2),
    ]
    assert cohort.changes(0, 1).misregistration_mm == pytest.approx(0.3941, abs=1e-4)
    scan = cohort[1]
    assert (scan.brain.sum(), scan.lesions.sum(), scan.all_lesions.sum()) == (27337, 48, 48)
    np.testing.assert_allclose(scan.images[:, 12, 24, 20], [-0.1016, 0.1709, 0.2275, -0.4922, -0.1074], atol=0.002)
