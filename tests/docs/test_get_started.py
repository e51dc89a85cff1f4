"""The first pages that people read, followed word by word."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from lesioncount import demo
from lesioncount.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks_of(page):
    """The kinds and texts of all blocks, in their order."""
    return re.findall(r"^```(\w+)\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def run(line):
    program, *arguments = shlex.split(line)
    if program == "python":
        assert arguments[:2] == ["-m", "lesioncount.demo"]
        assert demo.main(arguments[2:]) == 0
    elif program == "cp":
        shutil.copy(*arguments)
    elif program != "pip":
        assert program == "lesioncount"
        assert main(arguments) == 0


@pytest.mark.parametrize(("page", "n_shown"), [("index.md", 1), ("get-started.md", 2)])
def test_every_block_can_be_followed_and_prints_what_is_shown(page, n_shown, tmp_path, monkeypatch, capsys):
    pytest.importorskip("jinja2", reason="needs the extra [report]")
    monkeypatch.chdir(tmp_path)
    demo.write_samples("demo")
    shutil.copy("demo/new/sub-141_ses-01.nii.gz", "scan.nii.gz")
    printed, shown = "", 0
    for kind, text in blocks_of(page):
        if kind == "text":
            assert text.rstrip() in printed
            shown += 1
            continue
        capsys.readouterr()
        if kind == "python":
            exec(compile(text, page, "exec"), {})  # noqa: S102 - our own documentation
        else:
            assert kind == "console"
            for line in text.splitlines():
                run(line)
        printed = capsys.readouterr().out
    assert shown == n_shown


def test_the_start_page_has_command_count_and_picture_before_its_first_heading():
    above = (DOCS / "index.md").read_text("utf-8").partition("\n## ")[0]
    assert re.search(r"lesioncount count .*90 % interval.*!\[.+\]\(figures/idea\.svg\)", above, re.DOTALL)
