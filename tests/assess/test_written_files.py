"""What ``evaluate``, ``summarize`` and ``review`` write keeps its keys and its bytes, and is read back."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from lesioncount.assess import summarize
from lesioncount.assess.evaluation.evaluation import read_evaluation, write_evaluation
from lesioncount.assess.reviews.journals import ReviewEvent, event_of
from lesioncount.folder.output import OutputFolder

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEPT = FIXTURES / "assessed_0_2"
EVALUATIONS = ("masks", "bins", "new")

LINE = (
    rb'{"reader": "\u00c4nn", "scan": "sub-01", "action": "decide", "map_sha256": "0f", "counting": "peaks", '
    rb'"candidate": 2, "peak": [1, 2, 3], "verdict": "several", "n": 3, "done": false, "seconds": 2.5, '
    rb'"shown": {"zoom": 1.5, "window": null}, "time": "2024-01-01T00:00:00.000+00:00", "id": "00ff"}'
)
EVENT = ReviewEvent(
    reader="Änn", scan="sub-01", action="decide", map_sha256="0f", counting="peaks", candidate=2, peak=(1, 2, 3),
    verdict="several", n=3, seconds=2.5, shown={"zoom": 1.5, "window": None}, time="2024-01-01T00:00:00.000+00:00",
    id="00ff",
)  # fmt: skip


@pytest.mark.parametrize("name", EVALUATIONS)
def test_an_evaluation_that_was_read_is_written_as_it_was(name, tmp_path):
    write_evaluation(read_evaluation(KEPT / name), OutputFolder(tmp_path))
    for path in (KEPT / name).iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


# Where the types with defaults are in an evaluation.
PARTS = {
    "evaluation": (), "truth": ("truth",), "method": ("methods", "raw"), "lesions": ("lesions",),
    "score": ("methods", "raw", "scores", "rps"), "scan": ("scans", 0),
}  # fmt: skip


def part_of(content, path):
    for key in path:
        content = content[key]
    return content


@pytest.mark.parametrize("path", PARTS.values(), ids=PARTS)
def test_what_an_evaluation_lacks_or_has_too_much_does_no_harm(path, tmp_path):
    """As of an older version, or of a later one. Nothing is shown without methods, nor of another format."""
    text = (KEPT / "masks" / "evaluation.json").read_text()
    for key in part_of(json.loads(text), path).keys() - {"methods", "format"}:
        content = json.loads(text)
        inside = part_of(content, path)
        del inside[key]
        inside["of_a_later_version"] = {"a": [1, None]}
        (tmp_path / "evaluation.json").write_text(json.dumps(content))
        read = read_evaluation(tmp_path)
        assert "of_a_later_version" not in part_of(read.to_dict(), path)
        assert read.methods.keys() == content["methods"].keys()


def test_an_event_of_an_older_or_a_later_version_is_read():
    for key in json.loads(LINE).keys() - {"reader", "scan", "action", "peak", "verdict", "n"}:
        content = {name: value for name, value in json.loads(LINE).items() if name != key}
        assert event_of(json.dumps(content | {"mood": "good"}).encode()).peak == (1, 2, 3)


def test_a_summary_has_the_keys_columns_and_numbers_that_it_had(tmp_path):
    shutil.copytree(FIXTURES / "results_0_2" / "peaks", tmp_path / "peaks")
    rows = (f"sub-0{i}\t{'ab'[i % 2]}\t{i / 2}\n" for i in range(1, 5))
    (tmp_path / "participants.tsv").write_text("participant_id\tarm\tyears\n" + "".join(rows))
    options = {"by": "arm", "exposure": "years", "participants": tmp_path / "participants.tsv"}
    summarize(tmp_path / "peaks", tmp_path / "out", **options)
    for name in ("groups.tsv", "ratios.tsv", "imputations.tsv"):
        before, after = (
            list(csv.DictReader(folder.joinpath(name).read_text().splitlines(), delimiter="\t"))
            for folder in (KEPT / "arms", tmp_path / "out")
        )
        assert [{column: row[column] for column in old} for old, row in zip(before, after, strict=True)] == before
    before, after = (json.loads((folder / "summary.json").read_text()) for folder in (KEPT / "arms", tmp_path / "out"))
    assert before.keys() <= after.keys()
    for one, other in zip(before["groups"] + before["ratios"], after["groups"] + after["ratios"], strict=True):
        assert {key: other[key] for key in one} == pytest.approx(one)


def test_an_event_is_the_line_that_it_was():
    assert EVENT.to_line() == LINE
    assert event_of(LINE) == EVENT
