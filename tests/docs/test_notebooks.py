"""Notebooks: every cell runs, and gives what is stored beneath it."""

import ast
import json
import re
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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_give_what_is_shown(path, tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas", reason="needs the extra [notebook]")
    pytest.importorskip("matplotlib", reason="needs the extra [notebook]").use("agg")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for cell in cells_of(path, "code"):
        value = run("".join(cell["source"]), namespace)
        shown = {output["output_type"]: output for output in cell["outputs"]}
        assert capsys.readouterr().out == "".join(shown.get("stream", {"text": []})["text"])
        if value is not None:
            assert repr(value) == "".join(shown["execute_result"]["data"]["text/plain"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for cell in cells_of(path, "markdown"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", "".join(cell["source"])):
            assert (path.parent / target).exists(), target
