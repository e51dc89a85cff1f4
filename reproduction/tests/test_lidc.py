"""A detector's candidates and four readers' counts: read, and counted in every way that needs no map."""

import gzip

import numpy as np
import pytest

from lesioncount.errors import CohortError
from lesioncount_reproduction.lidc import CANDIDATES, COUNTS, read_lidc

COLUMNS = ("series_uid", "patient", *(f"nodules_3mm_reader{number}" for number in (1, 2, 3, 4)))


def table(path, rows):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(5)
    readings, candidates = [COLUMNS], [("series_uid", "score")]
    for number in range(60):
        chances = rng.uniform(0.05, 0.95, 6)
        truth = int((rng.random(6) < chances).sum())
        readings.append((f"s{number}", f"p{number // 2}", *(max(truth + rng.integers(-1, 2), 0) for _ in range(4))))
        candidates += [(f"s{number}", f"{1 / (1 + (1 / p - 1) ** 2 * 0.05):.6f}") for p in chances]
    readings.append(("without", "p99", 1, 1, 1, 1))
    table(tmp_path / COUNTS, readings)
    table(tmp_path / CANDIDATES, candidates)
    return tmp_path


def test_scans_have_their_scores_and_readings(folder):
    scans = read_lidc(folder)
    assert len(scans) == 60  # one has readings only
    assert all(len(scan.scores) == 6 for scan in scans)
    assert all((np.diff(scan.scores) <= 0).all() for scan in scans)
    assert all(len(scan.readings) == 4 for scan in scans)


def test_files_that_are_no_tables_are_refused_in_a_sentence(tmp_path):
    (tmp_path / CANDIDATES).write_bytes(b"no gzip")
    with pytest.raises(CohortError, match="is not a table of LIDC"):
        read_lidc(tmp_path)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI
def test_candidates_are_counted_in_every_way_that_needs_no_map(folder, tmp_path):
    for module in ("torch", "lightning", "monai", "jinja2", "sklearn"):
        pytest.importorskip(module)
    from lesioncount_reproduction.experiments.reproduce import reproduce

    [result] = reproduce(tmp_path / "out", preset="laptop", data={"lidc": str(folder)})
    assert (result.experiment, result.seeds, result.n_patients) == ("which", (), 30)
    rows = {row[0]: row for row in result.tables[0].rows}
    assert rows["candidates, calibrated"][1].value < rows["candidates with their scores"][1].value
    assert rows["candidates, calibrated"][1].value < rows["connected components, τ tuned"][1].value
    assert "test scans of 30 patients." in (tmp_path / "out" / "lidc-which.md").read_text("utf-8")
