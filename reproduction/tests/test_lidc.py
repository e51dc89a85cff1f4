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


def changed(name, old, new):
    """A change of the text of a table."""

    def change(folder):
        text = gzip.decompress((folder / name).read_bytes()).decode()
        assert old in text
        (folder / name).write_bytes(gzip.compress(text.replace(old, new, 1).encode()))

    return change


def bytes_flipped(folder):
    content = bytearray((folder / CANDIDATES).read_bytes())
    content[50:90] = bytes(40)
    (folder / CANDIDATES).write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / CANDIDATES).write_bytes(b"no gzip"), "is not a table of LIDC"),
        (lambda folder: (folder / CANDIDATES).unlink(), "is not a table of LIDC: No such file"),
        (bytes_flipped, "is not a table of LIDC"),
        (changed(CANDIDATES, "series_uid", "name"), "it has no column 'series_uid'"),
        (changed(COUNTS, "reader3", "reader9"), "it has no column 'nodules_3mm_reader3'"),
        (changed(CANDIDATES, "s0\t0", "s0\tx0"), "could not convert string to float"),
        (changed(CANDIDATES, "s0\t0", "s0\t7"), "which is not between 0 and 1"),
        (changed(CANDIDATES, "s0\t0", "s0\n"), "is not a table of LIDC"),
        (changed(COUNTS, "p99\t1", "p99\t-1"), "a count of -1"),
        (changed(COUNTS, "p99\t1", "p99\tone"), "invalid literal"),
        (lambda folder: table(folder / COUNTS, [COLUMNS]), "No scan of .* has candidates"),
        (lambda folder: table(folder / CANDIDATES, []), "No scan of .* has candidates"),
    ],
)
def test_damaged_files_are_refused_in_a_sentence(folder, damage, said):
    damage(folder)
    with pytest.raises(CohortError, match=said):
        read_lidc(folder)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI
def test_candidates_are_counted_in_every_way_that_needs_no_map(folder, tmp_path):
    for module in ("torch", "lightning", "monai", "jinja2", "sklearn"):
        pytest.importorskip(module)
    from lesioncount_reproduction.experiments.reproduce import reproduce

    [result] = reproduce(tmp_path / "out", preset="laptop", data={"lidc": str(folder)})
    assert (result.experiment, result.seeds, result.n_patients) == ("which", (), 30)
    rows = {row[0]: row for row in result.tables[0].rows}
    assert rows["calibrated candidates"][1].value < rows["candidates with their scores"][1].value
    assert rows["calibrated candidates"][1].value < rows["connected components, τ tuned"][1].value
    page = (tmp_path / "out" / "lidc-which.md").read_text("utf-8")
    assert "test scans of 30 patients." in page
    assert "minutes" not in page.lower()  # nothing was trained
    assert "Heads" not in page
