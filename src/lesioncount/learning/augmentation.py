"""Random changes to a scan that do not change its number of lesions."""

from __future__ import annotations

import math
from typing import Any

from monai.transforms import Compose, RandAffined, RandFlipd, ToTensord

# The values of the paper's authors.
_ROTATION = math.radians(8)
_SCALE = 0.1
_SHEAR = 0.05


def augmentation(spatial_dims: int, *, flips_only: bool = False) -> Any:
    """Rotation up to 8°, scale 0.9 to 1.1, a little shear, and flips, of images and mask together; or flips alone."""
    keys = ("images", "mask")
    n_rotations = 3 if spatial_dims == 3 else 1
    flips = [RandFlipd(keys, prob=0.5, spatial_axis=axis) for axis in range(spatial_dims)]
    if flips_only:
        return Compose([*flips, ToTensord(keys, track_meta=False)])
    return Compose(
        [
            RandAffined(
                keys,
                prob=0.8,
                rotate_range=[_ROTATION] * n_rotations,
                scale_range=[_SCALE] * spatial_dims,
                shear_range=[_SHEAR] * (6 if spatial_dims == 3 else 2),
                mode=("bilinear", "nearest"),
                padding_mode="border",
            ),
            *flips,
            ToTensord(keys, track_meta=False),
        ]
    )
