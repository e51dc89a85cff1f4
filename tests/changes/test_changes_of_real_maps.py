"""Changes put into real maps of a network, and expert masks of changes."""

from functools import cache

import nibabel as nib
import numpy as np
import pytest
from scipy import ndimage

import lesioncount as lc

NOISE_OF_LOGITS = 0.5


def moved(values, by):
    return np.clip(ndimage.shift(values, by, order=1), 0, 1)


def noisy(values, rng):
    """With smooth noise on the logits wherever there is anything."""
    smooth = ndimage.gaussian_filter(rng.standard_normal(values.shape), 1)
    logits = np.log((values + 1e-4) / (1 - values + 1e-4)) + NOISE_OF_LOGITS * smooth / smooth.std() * (values > 0.01)
    return 1 / (1 + np.exp(-logits))


def blob(shape, centre, height):
    distance = np.sqrt(sum((axis - at) ** 2 for axis, at in zip(np.indices(shape), centre, strict=True)))
    return np.minimum(height * np.clip(1.5 - distance / 3, 0, 1), height)


@cache
def with_new_lesions(path):
    """A real map, and later ones in which 1.4 lesions have come: as it was, moved, noisy, and both."""
    image = nib.load(path)
    before = np.clip(np.asarray(image.dataobj, dtype=np.float32), 0, 1)
    far = ndimage.distance_transform_edt(before[60:120, 80:140, 70:110] < 0.05)
    first = np.unravel_index(far.argmax(), far.shape)
    second = np.unravel_index((far * (np.abs(np.indices(far.shape)[0] - first[0]) > 15)).argmax(), far.shape)
    new = np.maximum(*(blob(before.shape, np.add(at, (60, 80, 70)), h) for at, h in ((first, 0.9), (second, 0.5))))
    rng = np.random.default_rng(0)
    shifted = moved(before, (1, 0, 0.5))
    after = (before, shifted, noisy(before, rng), noisy(shifted, rng))
    return before, [np.maximum(one, new).astype(np.float32) for one in after]


@pytest.mark.parametrize("protocol", ["paper", "peaks"])
@pytest.mark.parametrize("name", ["patient07_nic_stage1", "patient26_nic_final"])
def test_two_new_lesions_among_many_that_stay_are_told_apart_from_motion_and_noise(shared_data, name, protocol):
    before, later_ones = with_new_lesions(shared_data / "open_ms" / "nic_probs" / f"{name}_tta2_prob.nii.gz")
    for later in later_ones:
        changes = lc.compare(before, later, spacing_mm=(1, 1, 1), protocol=protocol)
        assert changes.new.mean() == pytest.approx(1.4, abs=0.15)
        assert changes.persisting.mean() > 10


def test_lesions_of_expert_masks_of_changes_are_new_once_and_then_stay(shared_data):
    folder = shared_data / "open_ms" / "longitudinal"
    n_lesions = 0
    for path in sorted(folder.glob("patient*_gt.nii.gz")):
        image = nib.load(path)
        mask, spacing = np.asarray(image.dataobj) > 0, image.header.get_zooms()[:3]
        n = lc.connected_component_count(mask) if mask.any() else 0
        appeared = lc.compare(np.zeros(mask.shape, bool), mask, spacing_mm=spacing)
        assert appeared.new.mode() == n
        assert appeared.gone.mode() == appeared.persisting.mode() == 0
        stayed = lc.compare(mask, np.roll(mask, 1, axis=0), spacing_mm=spacing)
        assert stayed.new.mean() == stayed.gone.mean() == 0
        n_lesions += n
    assert n_lesions > 50
