"""A distribution of its own: found by its entry points where it is installed, and named by a message where not."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import lesioncount
from lesioncount.cli import _OF_REPRODUCTION, main

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "reproduction" / "pyproject.toml").read_text("utf-8"))["project"]

# Without the distributions of the environment, as where nothing but lesioncount is installed.
ALONE = "import importlib.metadata as m, sys; m.entry_points = lambda **_: m.EntryPoints(); "


def without_it(code):
    return subprocess.run([sys.executable, "-c", ALONE + code], capture_output=True, text=True, check=False)


def test_it_has_the_version_of_the_package():
    assert PROJECT["version"] == lesioncount.__version__


@pytest.mark.parametrize("command", ["reproduce", "synthesize"])
@pytest.mark.parametrize("options", [[], ["--help"], ["--preset", "smoke"]])
def test_where_it_is_not_installed_its_commands_say_how_to_install_it(command, options):
    done = without_it(f"from lesioncount.cli import main; sys.exit(main({[command, *options]}))")
    assert done.returncode == 2
    assert f"the command {command} comes with the package lesioncount-reproduction" in done.stderr
    assert done.stderr.endswith("pip install ./reproduction\n")


def test_where_it_is_not_installed_its_data_are_named():
    code = (
        "from lesioncount.learning.config import TrainingConfig; from lesioncount.learning.sources import sources_of\n"
        "sources_of(TrainingConfig.load('smoke'))"
    )
    told = without_it(code).stderr
    assert re.search(r"but got 'synthetic'.* come with the package lesioncount-reproduction", told)


def test_help_lists_its_commands_and_looks_nothing_up():
    code = (
        "from lesioncount.cli import main\ntry: main(['--help'])\nfinally: print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=False)
    assert "reproduce" in done.stdout
    assert "synthesize" in done.stdout
    assert done.stdout.endswith("False\n")


@pytest.mark.usefixtures("installed_reproduction")
def test_where_it_is_installed_its_commands_and_its_data_are_found(capsys):
    assert set(entry_points(group="lesioncount.commands").names) == set(_OF_REPRODUCTION)
    for group in ("lesioncount.commands", "lesioncount.sources"):
        assert {one.name: one.value for one in entry_points(group=group)} == PROJECT["entry-points"][group]
        assert all(one.load() for one in entry_points(group=group))
    with pytest.raises(SystemExit, match="0"):
        main(["synthesize", "--help"])
    assert "--misregistration" in capsys.readouterr().out
