"""Fixtures for all tests."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Compiled code and a shared machine: the time of one example says nothing.
settings.register_profile("default", deadline=None, print_blob=True)
settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(20220706)


@pytest.fixture
def shared_data():
    """Real data beside the repository; what needs it is skipped where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder.parent.name}/{folder.name}, which is not here")
    return folder
