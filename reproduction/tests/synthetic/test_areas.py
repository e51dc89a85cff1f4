"""Areas of the brain, and lesions in them."""

import numpy as np
import pytest

from lesioncount_reproduction.synthetic import AgeingCohort, GadCohort
from lesioncount_reproduction.synthetic.areas import AREAS, ELSEWHERE, area_counts

NUMBER = {name: number for number, name in AREAS.items()}


@pytest.fixture(scope="module", params=["gad", "ageing"])
def cohort(request):
    return GadCohort(12, seed=2) if request.param == "gad" else AgeingCohort(6, seed=2, misregistration_mm=1)


def test_areas_cover_the_white_matter_and_nothing_outside_the_brain(cohort):
    for visit in cohort.visits[:4]:
        areas, tissues = cohort.areas(visit), cohort.content(visit).tissues
        assert areas.dtype == np.uint8
        assert set(np.unique(areas)) == {0, *AREAS}
        assert areas[tissues.brain & (tissues.white > 0.5)].all()
        assert areas[tissues.brain & (tissues.cortex > 0.5)].all()
        assert not areas[~tissues.brain].any()
        assert (tissues.fluid[areas == NUMBER["ventricles"]] >= 0.5).all()
        outer_fluid = (tissues.fluid > 0.5) & (tissues.from_ventricles_mm > 0)
        assert not areas[outer_fluid].any()


def test_areas_are_where_their_names_say(cohort):
    visit = cohort.visits[0]
    areas, tissues = cohort.areas(visit), cohort.content(visit).tissues
    heights = np.broadcast_to(cohort.places(visit).coordinates[0], areas.shape)
    assert tissues.from_ventricles_mm[areas == NUMBER["periventricular"]].max() <= 6
    assert tissues.clearance_mm[areas == NUMBER["juxtacortical"]].max() <= 5
    assert tissues.clearance_mm[areas == NUMBER["deep"]].min() > 5
    assert tissues.from_ventricles_mm[areas == NUMBER["deep"]].min() > 6
    assert heights[areas == NUMBER["lowest_part"]].max() < -28
    assert heights[(areas > 0) & (areas < 3)].min() >= -28


def test_every_lesion_is_in_one_area(cohort):
    total = dict.fromkeys((*AREAS.values(), ELSEWHERE), 0)
    for visit in cohort.visits:
        lesions = cohort.lesions(visit)
        counts = area_counts(lesions.values(), cohort.areas(visit), cohort.lattice)
        assert sum(counts.values()) == len(lesions)
        total = {name: total[name] + n for name, n in counts.items()}
    assert total["ventricles"] == total[ELSEWHERE] == 0
    assert min(total[name] for name in ("periventricular", "juxtacortical", "lowest_part", "deep")) > 0


def test_areas_move_with_the_head():
    still, moved = (AgeingCohort(2, seed=2, misregistration_mm=mm) for mm in (0, 2))
    before, after = (still.areas(visit) for visit in still.visits[:2])
    np.testing.assert_array_equal(before, after)
    elsewhere = moved.areas(moved.visits[1])
    assert 0.7 < np.mean(elsewhere[after > 0] == after[after > 0]) < 0.99
    # Of the lowest part, 14 mm high, some leaves the field of view.
    np.testing.assert_allclose(np.bincount(elsewhere.ravel()), np.bincount(after.ravel()), rtol=0.2)


def test_a_lesion_outside_all_areas_is_elsewhere(cohort):
    blob = next(blob for visit in cohort.visits for blob in cohort.lesions(visit).values())
    counts = area_counts([blob], np.zeros(cohort.lattice.shape, np.uint8), cohort.lattice)
    assert counts[ELSEWHERE] == 1
