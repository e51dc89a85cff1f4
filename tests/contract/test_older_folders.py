"""A folder that version 0.2 wrote is read, resumed and evaluated by every later one."""

import csv
import hashlib
import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

import lesioncount as lc
from lesioncount.assess.beside_truth import TruthOptions
from lesioncount.assess.evaluation import known_truth
from lesioncount.cli import main
from lesioncount.folder.atomic import certified
from lesioncount.folder.plain import flat, part, part_if_there
from lesioncount.results.scan_numbers import CandidateNumbers, CountNumbers

KEPT = Path(__file__).parents[1] / "fixtures" / "results_0_2"
MADE_IN = "/tmp/lesioncount-fixture"  # noqa: S108 - where records say that their maps are; nothing is there

# The command that wrote each folder.
COMMANDS = {re.search(r"-o (\w+)", line)[1]: line.split() for line in (KEPT / "commands.txt").read_text().splitlines()}

# What each folder says: the mean of each scan that was counted, or for each pair the means of each kind.
MEANS = {
    "regions": {"sub-01": 1.967541, "sub-02": 0.556217, "sub-03": 0.1, "sub-04": 3.231571},
    "peaks": {"sub-01": 2.22, "sub-02": 0.65, "sub-03": 0.0, "sub-04": 3.485},
    "ensemble": {"sub-01": 1.6575, "sub-02": 0.425, "sub-03": 0.0, "sub-04": 2.72},
    "changes": {
        "sub-01__ses-01__ses-02": (0.7, 0.8, 0.9),
        "sub-01__ses-02__ses-03": (0.4, 0.0, 1.6),
        "sub-02__ses-01__ses-02": (0.6, 0.0, 0.45),
        "sub-03__ses-01__ses-02": (0.0, 0.7, 0.0),
    },
    "changes_calibrated": {
        "sub-01": (0.731668, 0.8, 0.9),
        "sub-02": (0.640794, 0.0, 0.45),
        "sub-03": (0.1, 0.7, 0.0),
    },
}
COUNTS, CHANGES = ("regions", "peaks", "ensemble"), ("changes", "changes_calibrated")
FAILED = {"regions": ["sub-05"], "peaks": ["sub-05"], "ensemble": [], "changes": ["sub-04"], "changes_calibrated": []}
WHY = "is not a NIfTI file"  # the rest of the sentence may be put better
ROUNDED = 1e-5


def run(*arguments):
    return main([str(argument) for argument in arguments])


def records(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.json")) if path.name != "run.json"}


@pytest.fixture
def moved(tmp_path):
    """The folders and their maps, in another place than they were made in."""
    return Path(shutil.copytree(KEPT, tmp_path / "moved"))


@pytest.fixture
def at_home(moved, monkeypatch):
    """The same as though they had been made here: records and tables name the maps that are here."""
    for path in [*moved.glob("*/*.tsv"), *moved.glob("*/sub-*.json"), *moved.glob("*/run.json")]:
        text = path.read_text("utf-8").replace(MADE_IN, str(moved))
        for name, old in json.loads(text).get("files", {}).items() if path.name == "run.json" else ():
            text = text.replace(old, hashlib.sha256((path.parent / name).read_bytes()).hexdigest())
        path.write_text(certified(path.name, without_checksum(text)) if path.suffix == ".json" else text, "utf-8")
    monkeypatch.chdir(moved)
    return moved


def without_checksum(text):
    return re.sub(r',\n"checksum": "\w+"\n}\n$', "\n}\n", text)


@pytest.mark.parametrize("folder", COUNTS)
def test_counts_are_read_back(folder):
    results = lc.read_results(KEPT / folder)
    assert {scan.name: scan.counted.best.count_mean for scan in results.counted} == pytest.approx(
        MEANS[folder], rel=ROUNDED
    )
    assert [scan.name for scan in results.failed] == FAILED[folder]
    assert all(WHY in scan.error for scan in results.failed)
    assert results.total(results.calibration).mean() == pytest.approx(sum(MEANS[folder].values()), rel=ROUNDED)
    assert results.n_members == (2 if folder == "ensemble" else 1)
    for record in results.records():
        assert len(record.lesions) == sum(map(len, record.summary.tables))


def test_what_was_asked_and_guaranteed_of_counts_is_read_back():
    results = lc.read_results(KEPT / "regions")
    record = results.record("sub-01")
    assert {one.numbers.region: one.numbers.calibrated.count_mean for one in record.regions} == pytest.approx(
        {"left": 1.237482, "right": 0.730060, "outside": 0.0, "near": 1.237482}, rel=ROUNDED
    )
    answers = {one.question: one.probability_calibrated for one in record.summary.answers}
    assert answers == pytest.approx({"count >= 2": 0.709115, "left >= 1": 0.886124}, rel=ROUNDED)
    assert [scan.counted.guaranteed for scan in results.counted] == [(0, 4), (0, 2), (0, 1), (1, 6)]
    assert results.calibration == lc.fitting.CalibrationFit.load(KEPT / "calibration.json").calibration


@pytest.mark.parametrize("folder", CHANGES)
def test_changes_are_read_back(folder):
    results = lc.read_changes(KEPT / folder)
    for place, kind in enumerate(("new", "gone", "persisting")):
        means = {name: count.mean() for name, count in results.distributions(kind).items()}
        assert means == pytest.approx({name: three[place] for name, three in MEANS[folder].items()}, rel=ROUNDED)
    assert [course.name for course in results.failed] == FAILED[folder]
    assert all(WHY in course.error for course in results.failed)
    assert [len(record.sessions) for record in results.records()] == ([3, 2, 2] if folder == "changes" else [2, 2, 2])


def test_what_was_asked_and_guaranteed_of_changes_is_read_back():
    answers = [pair.answers[0].probability for one in lc.read_changes(KEPT / "changes").compared for pair in one.pairs]
    assert answers == pytest.approx([0.7, 0.4, 0.6, 0.0], rel=ROUNDED)
    calibrated = lc.read_changes(KEPT / "changes_calibrated").compared
    assert [one.pairs[0].counts["new"].numbers.guaranteed for one in calibrated] == [(0, 2), (0, 2), (0, 1)]


@pytest.mark.parametrize("folder", COMMANDS)
def test_a_run_that_is_resumed_keeps_every_record_and_table(at_home, folder):
    kept = [path for path in (at_home / folder).iterdir() if path.name != "run.json"]
    # A scan that failed is tried again, and its record written as today; a table may have more columns than it had.
    again = {f"{name}.json" for name in FAILED[folder]} | {path.name for path in kept if path.suffix == ".tsv"}
    before = {path: path.read_bytes() for path in kept if path.name not in again}
    tables = {path: read_table(path) for path in kept if path.suffix == ".tsv"}
    assert run(*COMMANDS[folder], "--resume", "--quiet") == (1 if FAILED[folder] else 0)
    assert {path: path.read_bytes() for path in before} == before
    for path, rows in tables.items():
        check_table(rows, read_table(path))


# Not "changes": a patient that failed has no fingerprints, by which maps that have moved could be known again.
@pytest.mark.parametrize("folder", [*COUNTS, "changes_calibrated"])
def test_results_and_maps_that_have_moved_are_resumed_all_the_same(moved, folder, monkeypatch):
    before = records(moved / folder)
    monkeypatch.chdir(moved)
    assert run(*COMMANDS[folder], "--resume", "--quiet") == (1 if FAILED[folder] else 0)
    after = records(moved / folder)
    assert after.keys() == before.keys()
    assert [name for name in after if after[name] != before[name]] == [f"{name}.json" for name in FAILED[folder]]


@pytest.mark.parametrize("folder", COMMANDS)
def test_the_same_maps_give_the_same_tables_column_by_column(at_home, folder):
    command = [*COMMANDS[folder], "--quiet"]
    command[command.index("-o") + 1] = "again"
    run(*command)
    tables = {path.name: path for path in (at_home / folder).glob("*.tsv")}
    assert {path.name for path in (at_home / "again").glob("*.tsv")} == tables.keys()
    for name, path in tables.items():
        check_table(read_table(path), read_table(at_home / "again" / name))


def check_table(before, after):
    """Each column that there was, wherever it is now, says the same."""
    assert set(before[0]) <= set(after[0])
    assert len(after) == len(before)
    places = [after[0].index(column) for column in before[0]]
    for one, other in zip(before[1:], after[1:], strict=True):
        assert all(map(is_same, one, (other[place] for place in places))), (one, other)


def read_table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))


def is_same(before, after):
    try:
        return float(after) == pytest.approx(float(before), rel=ROUNDED)
    except ValueError:
        return after == before or (WHY in before and WHY in after)


@pytest.mark.parametrize("folder", COMMANDS)
def test_they_are_evaluated(at_home, folder, tmp_path):
    truth = tmp_path / "counts.tsv"
    truth.write_text("scan\tcount\n" + "".join(f"{name}\t1\n" for name in MEANS[folder]))
    for options in ([], ["--counts-only"]):
        out = tmp_path / f"evaluated{len(options)}"
        assert run("evaluate", at_home / folder, "--truth-counts", truth, "-o", out, "--quiet", *options) == 0
        assert json.loads((out / "evaluation.json").read_text())["n_scans"] == len(MEANS[folder])


@pytest.mark.parametrize("folder", COMMANDS)
def test_they_are_summarized(folder, tmp_path):
    table = tmp_path / "participants.tsv"
    names = [f"sub-{number:02}" for number in range(1, 5)]
    arms = zip(names, ("a", "b", "a", "b"), strict=True)
    table.write_text("participant_id\tarm\n" + "".join(f"{name}\t{arm}\n" for name, arm in arms))
    out = tmp_path / "summary"
    assert run("summarize", KEPT / folder, "--by", "arm", "--participants", table, "-o", out, "--quiet") == 0
    expected = sum(one if folder in COUNTS else one[0] for one in MEANS[folder].values())
    groups = csv.DictReader((out / "groups.tsv").read_text().splitlines(), delimiter="\t")
    assert sum(float(row["total"]) for row in groups) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("folder", ["regions", "peaks", *CHANGES])
def test_they_are_what_a_calibration_is_fitted_on(folder, tmp_path):
    truth = tmp_path / "counts.tsv"
    truth.write_text("scan\tcount\n" + "".join(f"{name}\t1\n" for name in MEANS[folder]))
    known, _ = known_truth(KEPT / folder, TruthOptions(table=truth))
    assert list(known.counts) == [1] * len(MEANS[folder])


# Where a later version may have more to say: in the record itself, or in one of its parts.
PARTS = {
    "regions": [(), ("input",), ("map",), ("count",), ("settings",), ("lesions", 0), ("regions", 0), ("answers", 0)],
    "ensemble": [(), ("members", 0)],
    "changes": [
        (), ("settings",), ("pairs", 0), ("pairs", 0, "new"), ("pairs", 0, "new", "count"), ("pairs", 0, "answers", 0),
        ("sessions", 0), ("sessions", 0, "input"), ("sessions", 0, "map"), ("sessions", 0, "lesions", 0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("is_certified", [True, False])
@pytest.mark.parametrize(("folder", "part"), [(folder, part) for folder, parts in PARTS.items() for part in parts])
def test_a_key_that_only_a_later_version_knows_does_no_harm(moved, folder, part, is_certified):
    path = moved / folder / "sub-01.json"
    content = json.loads(without_checksum(path.read_text("utf-8")))
    inside = content
    for key in part:
        inside = inside[key]
    inside["of_a_later_version"] = {"a": [1, 2.5, None]}
    text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()) + "\n}\n"
    path.write_text(certified(path.name, text) if is_certified else text, "utf-8")
    read = lc.read_changes if folder in CHANGES else lc.read_results
    now, before = read(moved / folder), read(KEPT / folder)
    assert [one.name for one in now.failed] == FAILED[folder]
    assert now.record("sub-01").to_json() == before.record("sub-01").to_json()


def test_a_column_with_a_default_that_came_later_is_not_needed():
    """As if `CountNumbers` had got one more field: what an older version did not write has its default."""
    later = msgspec.defstruct("Later", [("n_of_tomorrow", int, 7)], bases=(CountNumbers,), frozen=True)
    row = json.loads((KEPT / "regions" / "sub-01.json").read_text())["count"]
    numbers = msgspec.convert(row, flat(CandidateNumbers, later, (later, "_calibrated")))
    assert part(numbers, later).n_of_tomorrow == 7
    assert part_if_there(numbers, later, "_calibrated").n_of_tomorrow == 7
    assert part(numbers, later).count_mean == row["count_mean"]
