"""Fixtures for all tests."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Compiled code, a shared machine: the time of one example says nothing. In CI the same examples every time, so that a
# change is judged by what it changed; elsewhere new ones, so that they are found.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


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
