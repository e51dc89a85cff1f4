"""What is said before a count goes wrong, and what is left in peace."""

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.results.count_warnings import JOINED, MOSTLY_ABOVE, SPECKS, headline, in_general
from lesioncount.runs import count_batch, count_file

JOINED = JOINED.format(threshold=0.5)


@pytest.fixture
def warnings_of(tmp_path):
    def warnings(probabilities, mask=None, **protocol):
        np.save(tmp_path / "map.npy", np.asarray(probabilities, np.float32))
        if mask is not None:
            np.save(tmp_path / "mask.npy", mask)
            mask = tmp_path / "mask.npy"
        count = count_file(tmp_path / "map.npy", mask=mask, protocol=lc.CountingProtocol(**protocol))
        return {in_general(warning): warning for warning in count.warnings}

    return warnings


def picture(*blobs, shape=(40, 40)):
    p = np.zeros(shape)
    for place, value in blobs:
        p[place] = value
    return p


def test_specks_that_make_the_count(warnings_of):
    specks = picture((np.s_[::4, 2], 0.4), (np.s_[20:24, 20:24], 0.9))
    assert list(warnings_of(specks)) == [SPECKS]
    assert warnings_of(specks)[SPECKS].endswith("In this map: 10 of 11 candidates, 4.0 of 4.9 expected lesions.")
    assert not warnings_of(specks, min_voxels=3)
    more = (np.s_[20:24, 20:24], 0.9), (np.s_[30:33, 30], 0.4)
    assert not warnings_of(picture((np.s_[::8, 2], 0.2), *more))  # 1 of 2.3 lesions
    assert not warnings_of(picture((np.s_[0, 2], 0.4)))  # less than a lesion


def test_components_that_touch_above_the_threshold(warnings_of):
    touching = picture((np.s_[2:38, 2:38], 0.2), *((np.s_[i : i + 3, 8:12], 0.9) for i in range(4, 34, 5)))
    assert list(warnings_of(touching)) == [JOINED, MOSTLY_ABOVE]
    assert warnings_of(touching)[JOINED].endswith("In this map: 6 components in 1 candidate.")
    assert not warnings_of(touching, threshold=0.3)
    assert JOINED not in warnings_of(touching, min_voxels=13)  # none of the components is large enough
    few = picture((np.s_[2:38, 8:12], 0.2), *((np.s_[i : i + 3, 8:12], 0.9) for i in range(4, 24, 5)))
    assert not warnings_of(few)


def test_a_map_that_is_mostly_above_the_threshold(warnings_of):
    background = 1 - picture((np.s_[2:8, 2:8], 0.9))
    background[0, 0] = 0.4
    assert list(warnings_of(background)) == [MOSTLY_ABOVE]
    assert warnings_of(background)[MOSTLY_ABOVE].endswith("In this map: 98% of the voxels.")
    dense = picture((np.s_[:18], 0.4))  # 45 %
    assert not warnings_of(dense)
    inside = np.zeros((40, 40), bool)
    inside[:20] = True
    assert list(warnings_of(dense, inside)) == [MOSTLY_ABOVE]


@pytest.mark.parametrize("warning", [SPECKS, JOINED, MOSTLY_ABOVE])
def test_a_warning_names_an_option_and_opens_with_a_headline(warning):
    assert "--" in warning
    assert len(headline(warning)) < 70


def test_real_maps_of_specks(shared_data):
    """A network whose final maps say 50 and 86 lesions; experts drew 38 and 19."""
    for patient in ("07", "26"):
        path = shared_data / "open_ms" / "nic_probs" / f"patient{patient}_nic_final_tta2_prob.nii.gz"
        assert SPECKS in map(in_general, count_file(path).warnings)
        assert not count_file(path, protocol=lc.CountingProtocol.named("ms")).warnings


def test_real_pictures_of_leaves_and_nuclei(shared_data, warnings_of):
    """Lesions of leaves lie apart, nuclei touch: where that is warned of, counts are half of the truth."""
    with np.load(shared_data / "coffee_leaf_lesions" / "oof_maps.npz") as leaves:
        maps = 1 / (1 + np.exp(-leaves["logit"][:100].astype(np.float32)))
    told = [warnings_of(p) for p in maps]
    assert sum(map(bool, told)) <= 10
    with np.load(shared_data / "nuclei" / "nuclei.npz") as nuclei:
        maps, truth = 1 / (1 + np.exp(-nuclei["logit"][:100].astype(np.float32))), nuclei["count"][:100]
    joined = np.array([JOINED in warnings_of(p) for p in maps])
    expected = np.array([lc.count_lesions(p).distribution.mean() for p in maps])
    assert 0.2 < joined.mean() < 0.6
    assert expected[joined].sum() < 0.6 * truth[joined].sum()
    assert expected[~joined].sum() > 0.8 * truth[~joined].sum()


def test_members_of_an_ensemble_say_it_once(tmp_path):
    for member, n in (("a", 5), ("b", 8)):
        (tmp_path / member).mkdir()
        np.save(tmp_path / member / "s.npy", picture((np.s_[: 4 * n : 4, 2], 0.4)).astype(np.float32))
    (scan,) = count_batch([tmp_path / "a", tmp_path / "b"], tmp_path / "out", members=True).scans
    assert [in_general(warning) for warning in scan.warnings] == [SPECKS]
