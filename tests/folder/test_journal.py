"""Files that lines are appended to."""

import errno
import json
import os
import subprocess
import sys

import pytest

from lesioncount.errors import MapFileError
from lesioncount.folder.journal import Journal
from lesioncount.folder.output import OutputFolder

_WRITER = """
import sys
from pathlib import Path
from lesioncount.folder.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(200):
    journal.append(f'{{"of": {sys.argv[2]}, "number": {number}, "text": "{"x" * 300}"}}'.encode())
"""


def test_lines_come_back_in_order_and_once(tmp_path):
    journal = Journal(tmp_path / "a.jsonl")
    assert journal.news() == []
    journal.append(b"one")
    journal.append(b"two")
    assert journal.news() == [b"one", b"two"]
    assert journal.news() == []
    Journal(tmp_path / "a.jsonl").append(b"three")
    assert journal.news() == [b"three"]


def test_line_that_a_crash_has_cut_never_joins_the_next(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"whole": 1}\n{"cut": 2, "an')
    journal = Journal(path)
    assert journal.news() == [b'{"whole": 1}']
    journal.append(b'{"next": 3}')
    assert journal.news() == [b'{"cut": 2, "an', b'{"next": 3}']
    assert path.read_bytes().startswith(b'{"whole": 1}\n{"cut": 2, "an\n')


def test_processes_that_append_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(of)]) for of in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = [json.loads(line) for line in Journal(path).news()]
    for of in range(3):
        assert [one["number"] for one in found if one["of"] == of] == list(range(200))


def test_link_is_neither_read_nor_written(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious\n")
    (tmp_path / "a.jsonl").symlink_to(elsewhere)
    with pytest.raises(MapFileError, match="cannot be used"):
        Journal(tmp_path / "a.jsonl").append(b"line")
    with pytest.raises(MapFileError, match="cannot be used"):
        Journal(tmp_path / "a.jsonl").news()
    assert elsewhere.read_text() == "precious\n"


def test_folder_of_journals_that_is_a_link_out_of_the_output_is_refused(tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "reviews").symlink_to(elsewhere)
    with pytest.raises(MapFileError, match="leads out of"):
        OutputFolder(out).append_line("reviews/ann.jsonl", b"line")
    assert list(elsewhere.iterdir()) == []


def test_full_disk_is_an_error_and_what_was_cut_harms_nobody(tmp_path, monkeypatch):
    journal, write = Journal(tmp_path / "a.jsonl"), os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:4]))
    with pytest.raises(MapFileError, match="the disk is full"):
        journal.append(b'{"one": 1}')
    monkeypatch.undo()
    journal.append(b'{"two": 2}')
    assert journal.news() == [b'{"on', b'{"two": 2}']


def test_disk_that_fails_is_said(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(MapFileError, match=r"a\.jsonl cannot be written or read: Input/output error"):
        Journal(tmp_path / "a.jsonl").append(b"line")
