"""What a run that is resumed reads: ``run.json`` is parsed once, and each record is read once."""

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from two_kinds import KINDS

NAMES = ("p1", "p2", "p3")


@pytest.fixture
def readings(monkeypatch):
    """How often files were read, and how often ``run.json`` was parsed."""
    found, opened = Counter(), Path.open

    def counted_open(path, mode="r", *args, **kwargs):
        found[path.name] += "r" in mode and "+" not in mode
        return opened(path, mode, *args, **kwargs)

    def counted_parse(parse):
        def parsed(text, *args, **kwargs):
            found["parsed run.json"] += str(text)[:20].startswith(('{\n"settings"', '{\n"kind"'))
            return parse(text, *args, **kwargs)

        return parsed

    monkeypatch.setattr(Path, "open", counted_open)
    monkeypatch.setattr(json, "loads", counted_parse(json.loads))
    monkeypatch.setattr(msgspec.json, "decode", counted_parse(msgspec.json.decode))
    return found


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_run_is_parsed_once_and_each_record_is_read_once(kind, tmp_path, readings):
    pytest.importorskip("jinja2")
    maps, out = kind.cohort(tmp_path / "maps", NAMES), tmp_path / "out"
    assert kind.run(maps, out, "--report", "--write=labels") == 0
    page = (out / kind.page).read_bytes()
    readings.clear()
    assert kind.run(maps, out, "--report", "--write=labels", "--resume") == 0
    assert readings["parsed run.json"] == 1
    assert [readings[f"{name}.json"] for name in NAMES] == [1, 1, 1]
    assert (out / kind.page).read_bytes() == page
