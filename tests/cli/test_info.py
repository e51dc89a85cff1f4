"""What `lesioncount info` says of an installation."""

import getpass
import json
import os
import platform
import socket
import tomllib
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import lesioncount
from lesioncount.cli import info as module
from lesioncount.cli import main
from lesioncount.cli.info import Installation, Package, installation

ROOT = Path(__file__).resolve().parents[2]


def shown(capsys, *options):
    assert main(["info", *options]) == 0
    return capsys.readouterr().out


def test_json_has_versions_vectors_and_whether_kernels_work(capsys):
    here = json.loads(shown(capsys, "--json"))
    assert here["lesioncount"] == lesioncount.__version__
    assert here["python"].startswith(platform.python_version())
    assert here["vectors"] in {"baseline", "avx2", "avx512"}
    assert here["kernels_work"] is True
    versions = {package["name"]: package["version"] for package in here["packages"]}
    assert versions["numpy"] == np.__version__
    assert all(version is None or version == metadata.version(name) for name, version in versions.items())


def test_the_text_says_the_same_and_which_extra_brings_what_is_missing(capsys):
    text = shown(capsys)
    assert f"numpy         {np.__version__}".split() in [line.split() for line in text.splitlines()]
    assert str(Package("zarr", None, ("cluster", "all"))) == "missing (lesioncount[cluster] or lesioncount[all])"
    assert str(Package("numpy", None)) == "missing"
    assert str(Package("numpy", "2.0")) == "2.0"


def test_nothing_tells_who_or_where_you_are(capsys):
    for options in ([], ["--json"]):
        text = shown(capsys, *options)
        private = {str(Path.home()), str(ROOT), os.sep + "site-packages", socket.gethostname()}
        assert not [word for word in private if len(word) > 1 and word in text]
        assert f"{os.sep}{getpass.getuser()}" not in text


def test_packages_are_those_of_the_project_each_once(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = project["dependencies"] + [
        f"{requirement}; extra == '{extra}'" for extra, group in extras.items() for requirement in group
    ]
    monkeypatch.setattr(module, "requires", lambda _: named)
    packages = {package.name: package for package in installation().packages}
    assert len(packages) == len(installation().packages)
    assert packages["numpy"].extras == ()
    assert packages["pillow"].extras == ("train", "tiff")
    assert packages["napari"].extras == ("napari",)
    assert not any(name.startswith("lesioncount") for name in packages)
    assert [package.name for package in installation().packages[:5]] == ["isal", "msgspec", "nibabel", "numpy", "rich"]


def test_what_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(module, "requires", lambda _: ["there-is-no-such-package>=2; extra == 'none'"])
    assert installation().packages == (Package("there-is-no-such-package", None, ("none",)),)
    monkeypatch.setattr(module, "requires", lambda _: None)  # a checkout that was never installed
    assert installation().packages == ()


def test_kernels_that_count_wrong_are_said_so(monkeypatch, capsys):
    monkeypatch.setattr(module, "_DISTRIBUTION", (1.0, 0.0, 0.0, 0.0))
    assert main(["info"]) == 1
    assert "COUNT WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["kernels_work", "vectors"])
def test_an_installation_is_a_plain_value(option):
    here = installation()
    assert isinstance(here, Installation)
    assert here == installation()
    assert replace(here, **{option: None}) != here
