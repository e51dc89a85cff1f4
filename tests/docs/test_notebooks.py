"""Notebooks: every cell runs, and gives what is stored beneath it."""

import ast
import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells_of(path, kind):
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == kind]


def run(source, namespace):
    """The value of the last line, if it is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)  # noqa: S102 - our own documentation
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307


def shown_by(cell, kind):
    return next(("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == kind), "")


def without_numbers(text):
    """Of cells that say so, numbers may differ from machine to machine: those of optimisers."""
    return re.sub(r"-?\d+(\.\d+)?", "#", text)


@pytest.fixture
def threads():
    """Notebooks may ask torch for one thread; others get theirs back."""
    before = find_spec("torch") and import_module("torch").get_num_threads()
    yield
    if before:
        import_module("torch").set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_give_what_is_shown(path, tmp_path, monkeypatch, capsys):
    if "import torch" in path.read_text("utf-8"):
        pytest.importorskip("torch", reason="needs the extra [torch]")
    pytest.importorskip("pandas", reason="needs the extra [notebook]")
    pytest.importorskip("matplotlib", reason="needs the extra [notebook]").use("agg")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for cell in cells_of(path, "code"):
        value = run("".join(cell["source"]), namespace)
        same = without_numbers if cell["metadata"].get("varies") else str
        assert same(capsys.readouterr().out) == same(shown_by(cell, "stream"))
        if value is not None:
            (shown,) = [output for output in cell["outputs"] if output["output_type"] == "execute_result"]
            assert same(repr(value)) == same("".join(shown["data"]["text/plain"]))
    import_module("matplotlib.pyplot").close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_is_small_and_has_a_picture_that_is_described(path):
    assert path.stat().st_size < 100_000
    drawn = [cell for cell in cells_of(path, "code") if "image/png" in str(cell["outputs"])]
    assert drawn
    assert all(len(cell["metadata"].get("alt", "")) > 20 for cell in drawn)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for cell in cells_of(path, "markdown"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", "".join(cell["source"])):
            assert (path.parent / target).exists(), target
