"""The drawing of the layers is made from the linter's contract, and what CONTRIBUTING names is there."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "lesioncount"


@pytest.fixture(scope="module")
def layers():
    path = ROOT / "docs" / "building" / "layers.py"
    spec = importlib.util.spec_from_file_location("docs_building_layers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_drawing_shows_the_layers_as_they_are_now(layers):
    assert layers.PICTURE.read_text("utf-8") == layers.drawing(), "run: python docs/building/layers.py"


def test_every_room_and_module_has_a_layer(layers):
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {room for layer in layers.layers() for room in layer} == modules | rooms


def test_words_stay_inside_their_boxes(layers):
    for line in layers.drawing().splitlines():
        if found := re.match(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', line):
            left, top, width, height = map(float, found.groups())
        elif found := re.match(r'<text x="([\d.]+)" y="([\d.]+)" fill="[^"]+" font-weight="\d+">(.+)</text>', line):
            x, y = float(found[1]), float(found[2])
            assert left < x
            assert x + layers.LETTER * len(found[3]) <= left + width
            assert top + layers.SIZE - 2 < y < top + height


@pytest.fixture(scope="module")
def walks():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return text[text.index("## Where things are") : text.index("## How the code should feel")]


def found(name):
    """Where a file that CONTRIBUTING names lies: in the package, its kernels, the study, or the repository."""
    study = ROOT / "reproduction" / "src" / "lesioncount_reproduction"
    places = (PACKAGE, PACKAGE / "_kernels", study, study / "experiments", ROOT)
    return next((place / name for place in places if (place / name).exists()), None)


def test_contributing_names_only_files_that_are_there(walks):
    named = set(re.findall(r"`((?:\w+/)*\w+(?:\.py|\.pyx|\.h|\.html\.j2|/))`", walks))
    assert len(named) > 60
    assert sorted(name for name in named if found(name) is None) == []


def test_contributing_names_functions_and_types_where_they_are(walks):
    named = set(re.findall(r"`([A-Za-z_.]+)(?<!tsv)`(?:,? in| \() ?`([\w/]+\.py)`", walks))
    assert len(named) > 30
    missing = []
    for name, file in named:
        text = found(file).read_text("utf-8")
        missing += [
            (name, file)
            for part in name.split(".")
            if not re.search(rf"(def|class) {part}\b|^ *{part}\b.* =", text, re.MULTILINE)
        ]
    assert missing == []
