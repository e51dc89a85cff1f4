"""Random changes to scans: what moves, what stays, and that lesions are not lost."""

import numpy as np
import pytest
from scipy import ndimage

torch = pytest.importorskip("torch", reason="needs the extra [train]")

from lesioncount.learning.batches import _drawn_matrix, _moved, augmented  # noqa: E402 - after the check


def blob(shape, at, radius=3.0):
    """An image that is bright around a voxel, and its mask."""
    distance = np.sqrt(sum((axis - place) ** 2 for axis, place in zip(np.indices(shape), at, strict=True)))
    image = torch.from_numpy(np.exp(-((distance / radius) ** 2)).astype(np.float32))[None]
    return image, (image > 0.4).float()


@pytest.mark.parametrize(("shape", "at"), [((20, 40, 32), (6, 25, 10)), ((64, 128), (20, 90))])
def test_nothing_moves_with_the_identity(shape, at):
    image, mask = blob(shape, at)
    moved, moved_mask = _moved(image, mask, np.eye(len(shape)))
    torch.testing.assert_close(moved, image, rtol=0, atol=1e-5)
    assert torch.equal(moved_mask, mask)


@pytest.mark.parametrize(("shape", "at"), [((20, 40, 32), (8, 25, 12)), ((64, 128), (30, 80))])
def test_a_scan_moves_as_scipy_moves_it(shape, at):
    image, mask = blob(shape, at)
    matrix = _drawn_matrix(len(shape), np.random.default_rng(4))
    centre = (np.array(shape) - 1) / 2
    moved, _ = _moved(image, mask, matrix)
    theirs = ndimage.affine_transform(image[0].numpy(), matrix, centre - matrix @ centre, order=1, mode="nearest")
    np.testing.assert_allclose(moved[0].numpy(), theirs, atol=1e-4)


def test_turns_scales_and_shears_are_small():
    rng = np.random.default_rng(0)
    matrices = np.array([_drawn_matrix(3, rng) for _ in range(300)])
    assert np.abs(matrices - np.eye(3)).max() < 0.35
    assert np.linalg.det(matrices).min() > 0.7
    assert np.linalg.det(matrices).max() < 1.4
    assert np.abs(matrices.mean(axis=0) - np.eye(3)).max() < 0.03


def test_image_and_mask_move_together():
    image, mask = blob((20, 40, 32), (9, 22, 14))
    for seed in range(8):
        moved, moved_mask = augmented(image, mask, np.random.default_rng(seed))
        overlap = float((moved_mask * (moved > 0.4)).sum() / moved_mask.sum())
        assert overlap > 0.8
        assert set(moved_mask.unique().tolist()) <= {0.0, 1.0}


def test_flips_alone_keep_every_voxel():
    image, mask = blob((6, 7, 5), (0, 6, 2))
    seen = set()
    for seed in range(40):
        moved, moved_mask = augmented(image, mask, np.random.default_rng(seed), flips_only=True)
        assert torch.equal(moved.flatten().sort().values, image.flatten().sort().values)
        assert torch.equal(moved_mask, (moved > 0.4).float())
        seen.add(tuple(np.unravel_index(int(moved.argmax()), (6, 7, 5))))
    assert len(seen) == 4  # the middle of the last axis stays where it is


def test_the_same_generator_draws_the_same():
    image, mask = blob((8, 9, 7), (4, 4, 3))
    first, again, other = (augmented(image, mask, np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
