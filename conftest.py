"""Fixtures for all tests, of the package and of the reproduction. What is not installed is not collected."""

import os
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Modules of learning/ that need more than numpy: the others also serve `lesioncount synthesize`.
_LEARNING = ("augmentation", "batches", "module", "prediction", "training")

_NEEDS = {
    "torch": [
        "src/lesioncount/torch/*",
        "src/lesioncount/integrations/*",
        "src/lesioncount/learning/networks/*",
        "tests/twin/toy_*",
    ],
    "torchmetrics": ["src/lesioncount/integrations/torchmetrics.py"],
    "monai": ["src/lesioncount/integrations/monai.py"],
    "lightning": [
        *(f"src/lesioncount/learning/{name}.py" for name in _LEARNING),
        "reproduction/src/lesioncount_reproduction/samples.py",
        "reproduction/src/lesioncount_reproduction/experiments/*",
    ],
    "starlette": ["src/lesioncount/review/server.py", "src/lesioncount/review/guard.py"],
    "statsmodels": ["src/lesioncount/trust/groups/rate_ratios.py"],
    "lesioncount_reproduction": ["reproduction/*"],
    "nnunetv2": ["src/lesioncount/integrations/nnunet/*"],
}
collect_ignore_glob = [path for package, paths in _NEEDS.items() if find_spec(package) is None for path in paths]

# Where another copy is installed, as from a wheel, that one is tested: the sources here may not even be compiled.
for sources, package in (("src", "lesioncount"), ("reproduction/src", "lesioncount_reproduction")):
    installed = find_spec(package)
    here = Path(__file__).parent / sources / package
    if installed is None or Path(installed.origin or "").resolve().parent != here.resolve():
        collect_ignore_glob.append(f"{sources}/*")

# Compiled code, a shared machine: the time of one example says nothing. In CI the same examples every time, so that a
# change is judged by what it changed; elsewhere new ones, so that they are found.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Besides tests with hypothesis.
_MANY_TIMES = (
    "tests/changes/test_changes_of_real_maps.py",
    "tests/questions/test_calibrated_answers.py",
    "tests/trust/fitting/test_real_maps.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have coverage not follow what runs the same lines hundreds of times: it would take two thirds more time.

    The bar is for the other tests to reach.
    """
    for item in items:
        is_hypothesis_test = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if is_hypothesis_test or item.nodeid.startswith(_MANY_TIMES):
            item.add_marker("no_cover")


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(20220706)


@pytest.fixture
def shared_data() -> Path:
    """Real data beside the repository; what needs it is skipped where it is absent."""
    folder = Path(__file__).resolve().parents[1] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder.parent.name}/{folder.name}, which is not here")
    return folder


@pytest.fixture(scope="session")
def installed_reproduction() -> None:
    """The package lesioncount-reproduction with its entry points; what needs them is skipped where it is absent."""
    if not entry_points(group="lesioncount.commands"):
        pytest.skip("needs the package lesioncount-reproduction: pip install ./reproduction")
