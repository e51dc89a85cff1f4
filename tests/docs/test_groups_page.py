"""The page about groups, followed on the demo."""

import re
import shlex
from pathlib import Path

import pytest

from lesioncount import demo
from lesioncount.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "groups.md").read_text("utf-8")


def _blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def trial(tmp_path, monkeypatch):
    """The demo, with the table that the page makes."""
    demo.write_samples(tmp_path / "trial")
    monkeypatch.chdir(tmp_path)
    table = _blocks("python")[0].partition("demo.write_samples")[2].partition("\n\n")[0].partition("\n")[2]
    exec(compile(f"from pathlib import Path\n{table}", "groups.md", "exec"), {})  # noqa: S102 - our own documentation
    monkeypatch.chdir(tmp_path / "trial")


@pytest.mark.usefixtures("trial")
def test_every_command_can_be_followed_and_prints_what_is_shown(capsys):
    pytest.importorskip("statsmodels", reason="needs the extra [stats]")
    commands, of_changes = _blocks("console")
    printed = {}
    for line in (*commands.splitlines(), *of_changes.splitlines()):
        assert main(shlex.split(line, comments=True)[1:]) == 0, capsys.readouterr().err
        printed[line] = capsys.readouterr().out
    (shown,) = _blocks("text")
    assert shown in printed[commands.splitlines()[1]]
    assert "new lesions" in printed[of_changes.splitlines()[1]]
    named = set(re.findall(r"`(\w+\.(?:tsv|json|html))`", PAGE)) - {"participants.tsv", "changes.tsv"}
    assert {path.name for path in Path("summary").iterdir()} >= named
