import pytest

from lesioncount_reproduction.cohort_files import write_cohort
from lesioncount_reproduction.synthetic import GadCohort

SMALL = (12, 24, 20)


@pytest.fixture(scope="session")
def cohort():
    """A small cohort with lesions in some of its scans."""
    return GadCohort(8, seed=4, shape=SMALL)


@pytest.fixture(scope="session")
def written(cohort, tmp_path_factory):
    """The same in files, which are only read."""
    folder = tmp_path_factory.mktemp("written") / "cohort"
    write_cohort(folder, cohort)
    return folder
