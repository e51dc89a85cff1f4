import pytest
from review_cohort import counted

pytest.importorskip("starlette")

_SCANS = {"a": [0.9, 0.6, 0.3, 0.2, 0.15, 0.5, 0.4, 0.7], "b": [0.8, 0.5], "c": []}


@pytest.fixture
def results(tmp_path):
    return counted(tmp_path, _SCANS)


@pytest.fixture
def images(results):
    return results.out.parent / "images"
