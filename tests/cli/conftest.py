import numpy as np
import pytest
from nifti_files import save


@pytest.fixture
def cohort(tmp_path, rng):
    """Six small maps as files."""
    folder = tmp_path / "cohort"
    for i in range(6):
        save(folder / f"scan{i}.nii.gz", (rng.random((8, 9, 10)) ** 4 * 0.7).astype(np.float32))
    return folder
