"""The synthetic cohort: what a seed promises, and what a scan must contain."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import CohortError
from lesioncount.learning.scans import count_of
from lesioncount_reproduction.cohort import SEQUENCES
from lesioncount_reproduction.synthetic import GadCohort
from lesioncount_reproduction.synthetic.lattice import REFERENCE_VOXEL_MM3
from lesioncount_reproduction.synthetic.lesions import gad_lesions

REFERENCE = (24, 48, 40)
DIGESTS = """
import sys
from test_gad import digest
from lesioncount_reproduction.synthetic import GadCohort
cohort = GadCohort(5, seed=7)
print(*(digest(cohort[i]) for i in map(int, sys.argv[1:])))
"""


@pytest.fixture(scope="module")
def scans():
    """All scans of thirty patients, at the shape that sizes were chosen for."""
    return list(GadCohort(30, seed=2))


def digest(scan):
    content = hashlib.sha256()
    for array in (scan.images, scan.brain, scan.lesions, scan.all_lesions, scan.affine):
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()


def test_scans_do_not_depend_on_order_or_on_what_was_made_before():
    cohort = GadCohort(5, seed=7)
    forward = [digest(cohort[i]) for i in range(len(cohort))]
    other = GadCohort(5, seed=7)
    assert [digest(other[i]) for i in reversed(range(len(other)))] == forward[::-1]
    test = cohort.split("test")
    assert [digest(scan) for scan in test] == [
        mine for mine, visit in zip(forward, cohort.visits, strict=True) if visit.split == "test"
    ]


def test_scans_are_the_same_in_another_process():
    cohort = GadCohort(5, seed=7)
    places = [len(cohort) - 1, 0, 2]
    found_in = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", DIGESTS, *map(str, places)],
        env={**os.environ, "PYTHONPATH": found_in, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "5"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [digest(cohort[i]) for i in places]


def test_another_seed_gives_other_scans():
    first, second = GadCohort(2, seed=1)[0], GadCohort(2, seed=2)[0]
    assert not np.array_equal(first.brain, second.brain)


def test_scans_of_a_patient_share_a_brain_but_not_their_noise(scans):
    by_patient = {}
    for scan in scans:
        by_patient.setdefault(scan.patient, []).append(scan)
    pairs = [visits[:2] for visits in by_patient.values() if len(visits) > 1]
    assert all(np.array_equal(first.brain, second.brain) for first, second in pairs)
    assert not any(np.array_equal(first.images, second.images) for first, second in pairs)


def test_images_are_scored_inside_the_brain(scans):
    scan = scans[0]
    assert scan.images.shape == (len(SEQUENCES), *REFERENCE)
    assert scan.images.dtype == np.float32
    inside = scan.images[:, scan.brain]
    np.testing.assert_allclose(inside.mean(axis=1), 0, atol=1e-3)
    np.testing.assert_allclose(inside.std(axis=1), 1, atol=1e-3)
    assert not scan.images[:, ~scan.brain].any()
    assert scan.shape == REFERENCE
    assert scan.name == "sub-001_ses-01"
    assert 0.4 < scan.brain.mean() < 0.8


def test_counts_are_those_of_the_masks(scans):
    for scan in scans:
        mask = scan.lesions.astype(np.uint8)
        assert scan.count == (lc.connected_component_count(mask, protocol="paper") if mask.any() else 0)
        assert not (scan.lesions & ~scan.all_lesions).any()
        assert not (scan.all_lesions & ~scan.brain).any()


def test_lesions_never_touch():
    for shape in (REFERENCE, (16, 32, 32)):
        cohort = GadCohort(40, seed=3, shape=shape)
        for index, visit in enumerate(cohort.visits):
            if visit.n_lesions > 5:
                mask = cohort[index].all_lesions
                corners = lc.CountingProtocol(connectivity="corners")
                assert lc.connected_component_count(mask, protocol=corners) == count_of(mask) == visit.n_lesions


def test_a_rater_misses_faint_lesions_only(rng):
    lesions = gad_lesions(rng, 4000)
    seen, missed = ([blob for blob in lesions if blob.labelled is labelled] for labelled in (True, False))
    assert 0.01 < len(missed) / len(lesions) < 0.10
    assert max(blob.amplitude for blob in missed) < 0.75
    assert np.median([blob.amplitude for blob in missed]) < 0.5 * np.median([blob.amplitude for blob in seen])


def test_what_the_rater_missed_is_in_the_other_mask():
    cohort = GadCohort(40, seed=5, shape=(12, 24, 20))
    unseen = [
        i for i, visit in enumerate(cohort.visits) if not all(blob.labelled for blob in cohort.content(visit).gad)
    ]
    assert unseen
    for index in unseen:
        scan = cohort[index]
        assert scan.count < count_of(scan.all_lesions) == cohort.visits[index].n_lesions


def test_lesions_are_small_and_large_faint_and_bright(rng):
    lesions = gad_lesions(rng, 4000)
    voxels = np.array([blob.volume_mm3 for blob in lesions]) / REFERENCE_VOXEL_MM3
    assert (voxels.min(), voxels.max()) == (pytest.approx(3), pytest.approx(150, rel=0.3))
    assert np.median(voxels) == pytest.approx(15, rel=0.1)
    assert np.median([blob.amplitude for blob in lesions]) == pytest.approx(0.78, rel=0.1)
    assert np.mean([blob.in_flair for blob in lesions]) == pytest.approx(0.92, abs=0.02)
    rings = np.array([blob.is_ring for blob in lesions])
    assert not rings[voxels < 25].any()
    assert rings[voxels > 25].mean() == pytest.approx(0.2, abs=0.05)


def test_lesions_enhance_and_so_does_much_else(scans):
    """A threshold on the difference of the two T1 images must neither find all lesions nor only lesions."""
    lesion, elsewhere = [], []
    for scan in scans:
        enhancement = scan.images[1] - scan.images[0]
        lesion.append(enhancement[scan.all_lesions])
        elsewhere.append(enhancement[scan.brain & ~scan.all_lesions])
    lesion, elsewhere = np.concatenate(lesion), np.concatenate(elsewhere)
    threshold = np.median(lesion)
    assert threshold > 3 * elsewhere.std()
    assert (elsewhere > threshold).sum() > len(lesion)


def test_gad_lesions_are_chronic_a_year_later():
    cohort = GadCohort(30, seed=2, shape=(12, 24, 20))
    for visit, following in zip(cohort.visits, cohort.visits[1:], strict=False):
        if visit.patient == following.patient and visit.n_lesions:
            old = {tuple(blob.centre_mm) for blob in cohort.content(following).chronic}
            assert {tuple(blob.centre_mm) for blob in cohort.content(visit).gad} <= old


@pytest.mark.parametrize("shape", [(16, 32, 32), (40, 96, 80)])
def test_other_shapes_show_the_same_disease(shape):
    reference, other = GadCohort(12, seed=5), GadCohort(12, seed=5, shape=shape)
    volumes = []
    for index, visit in enumerate(reference.visits):
        if visit.n_lesions:
            pair = reference[index], other[index]
            assert pair[0].split == pair[1].split
            assert count_of(pair[0].all_lesions) == count_of(pair[1].all_lesions) == visit.n_lesions
            assert np.prod(pair[0].shape) * np.prod(pair[0].spacing_mm) == pytest.approx(84 * 168 * 140)
            volumes.append([scan.all_lesions.sum() * np.prod(scan.spacing_mm) for scan in pair])
            assert volumes[-1][0] == pytest.approx(volumes[-1][1], rel=0.5)
    first, second = np.sum(volumes, axis=0)
    assert first == pytest.approx(second, rel=0.1)


def test_a_cohort_says_how_it_is_made():
    cohort = GadCohort(3, seed=9, shape=(12, 24, 20))
    assert "3 patients, seed 9" in repr(cohort)
    assert cohort.provenance["Command"].endswith("--patients 3 --seed 9 --shape 12 24 20")
    assert [scan.name for scan in cohort[:2]] == [cohort[0].name, cohort[1].name]
    assert cohort[-1].name == cohort[len(cohort) - 1].name
    with pytest.raises(IndexError):
        cohort[len(cohort)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_patients": 0}, "at least one patient"),
        ({"n_patients": 1, "seed": -1}, "a seed of at least 0"),
        ({"n_patients": 1, "shape": (24, 48)}, r"three numbers \(z, y, x\)"),
        ({"n_patients": 1, "shape": (4, 48, 40)}, "of at least 8"),
    ],
)
def test_what_makes_no_cohort_is_refused(options, message):
    with pytest.raises(CohortError, match=message):
        GadCohort(**options)


def test_an_unknown_part_is_refused():
    with pytest.raises(CohortError, match="Expected one of train, val, test, but got 'dev'"):
        GadCohort(1).split("dev")


def test_a_seed_gives_what_it_always_gave():
    """Results are quoted with the seeds of their scans. Who changes the generator on purpose changes this, too."""
    cohort = GadCohort(10, seed=1)
    assert [visit.n_lesions for visit in cohort.visits] == [0, 0, 1, 0, 1, 0, 5, 0, 7, 0, 3, 0, 0, 0, 0, 2, 0, 1, 0]
    scan = cohort[10]
    assert (scan.name, scan.brain.sum(), scan.lesions.sum()) == ("sub-005_ses-03", 24942, 75)
    assert (scan.count, scan.all_lesions.sum()) == (2, 79)
    np.testing.assert_allclose(scan.images[:, 12, 24, 20], [0.3174, 0.4834, -0.4775, -1.0225, 0.2793], atol=0.002)
