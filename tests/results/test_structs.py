"""What is read back from a file are structs: a missing key has a default, and an unknown one is ignored."""

import json
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec import Struct

from lesioncount.folder.atomic import certified
from lesioncount.results.record import Record, read_record
from lesioncount.results.run_file import Run, find_run

KEPT = Path(__file__).parents[1] / "fixtures" / "results_0_2"
FILES = sorted(path for path in KEPT.glob("*/*.json"))

# Without these, a record or a run says nothing that can be relied on: it is made again.
ESSENTIAL = {
    "Record": {
        "format", "kind", "scan", "patient", "status", "input", "settings", "map", "count", "pmf", "pmf_calibrated",
        "lesions", "members", "pairs", "sessions",
    },
    "FileFacts": {"path"},
    "MapFacts": {"shape"},
    "SessionRecord": {"input", "map"},
    "Pair": {"before", "after", "new", "gone", "persisting"},
    "Count": {"count", "pmf", "pmf_calibrated"},
    "ScanNumbers": {"count_mean"},
    "RegionRow": {"pmf", "pmf_calibrated"},
    "Answer": {"probability"},
    "LesionRow": {"label", "existence", "peak_i", "peak_j", "peak_k", "bbox", "lineage"},
    "Recorded": {"plain_protocol"},
    "Run": {"kind", "settings", "versions", "started"},
    "RunItem": {"scan", "patient", "status"},
}  # fmt: skip


def kind_of(path):
    return Run if path.name == "run.json" else Record


def read(folder, path):
    return find_run(folder) if path.name == "run.json" else read_record(folder, path.stem)


def structs_in(value, at=()):
    """All structs that a struct is made of, each with its place in the file."""
    if isinstance(value, Struct):
        yield at, value
        for field in msgspec.structs.fields(type(value)):
            yield from structs_in(getattr(value, field.name), (*at, field.encode_name))
    elif isinstance(value, tuple):
        for place, one in enumerate(value):
            yield from structs_in(one, (*at, place))


def samples():
    """One place for each type and each of its keys that any file has."""
    found = {}
    for path in FILES:
        content = json.loads(path.read_text("utf-8"))
        for at, value in structs_in(msgspec.json.decode(path.read_text("utf-8"), type=kind_of(path))):
            for field in msgspec.structs.fields(type(value)):
                if field.encode_name in inside(content, at):
                    found.setdefault((type(value).__name__, field.name, field.encode_name), (path, at))
    return found


def inside(content, at):
    for key in at:
        content = content[key]
    return content


SAMPLES = samples()


def changed(path, folder, change):
    """The same file, changed, with a check sum, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    content = json.loads(path.read_text("utf-8"))
    del content["checksum"]
    change(content)
    text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(one)}" for key, one in content.items()) + "\n}\n"
    (folder / path.name).write_text(certified(path.name, text), "utf-8")
    return folder


def test_every_type_that_is_read_back_has_a_sample():
    seen, todo = set(), [Record, Run]
    while todo:
        kind = todo.pop()
        seen.add(kind)
        parts = [field.type for field in msgspec.structs.fields(kind)]
        while parts:
            part = parts.pop()
            parts += get_args(part)
            if isinstance(part, type) and issubclass(part, Struct) and part not in seen:
                todo.append(part)
    assert {kind.__name__ for kind in seen} == {name for name, _, _ in SAMPLES}
    assert all(field.default is not msgspec.NODEFAULT or field.default_factory is not msgspec.NODEFAULT
               for kind in seen for field in msgspec.structs.fields(kind))  # fmt: skip


@pytest.mark.parametrize("sample", SAMPLES, ids=" ".join)
def test_a_key_that_is_missing_costs_nothing_else(sample, tmp_path):
    kind, name, key = sample
    path, at = SAMPLES[sample]
    folder = changed(path, tmp_path / "out", lambda content: inside(content, at).pop(key, None))
    typed = msgspec.json.decode((folder / path.name).read_text("utf-8"), type=kind_of(path))
    before = dict(structs_in(msgspec.json.decode(path.read_text("utf-8"), type=kind_of(path))))[at]
    after = dict(structs_in(typed))[at]
    for field in type(before).__struct_fields__:
        if field not in (name, "checksum"):
            assert getattr(after, field) == getattr(before, field)
    assert (read(folder, path) is None) == (name in ESSENTIAL.get(kind, ()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_is_read_is_written_as_it_was(path):
    assert certified(path.name, read(path.parent, path).to_json()) == path.read_text("utf-8")


@pytest.mark.parametrize("part", [(), ("run",), ("settings",), ("inputs", 0), ("patients", 0)], ids=str)
def test_a_key_of_a_run_that_only_a_later_version_knows_does_no_harm(part, tmp_path):
    path = KEPT / ("changes" if "patients" in part else "regions") / "run.json"
    folder = changed(path, tmp_path / "out", lambda content: inside(content, part).update(of_tomorrow={"a": [1, None]}))
    assert find_run(folder) == find_run(path.parent)
