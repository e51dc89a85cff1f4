"""Runs notebooks and stores what their cells give: ``python docs/building/run_notebooks.py docs/notebooks/*.ipynb``.

Needs ``lesioncount[notebook]``, and nothing of Jupyter: outputs are what a cell prints, the value of its last line, and
its figures.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        notebook = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            namespace: dict[str, Any] = {}
            for number, cell in enumerate(notebook["cells"]):
                cell["id"] = f"{path.stem.replace('_', '-')}-{number}"
                if cell["cell_type"] == "code":
                    cell |= {"execution_count": None, "outputs": list(_outputs("".join(cell["source"]), namespace))}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path} {path.stat().st_size / 1000:.0f} kB")


def _outputs(source: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        value = _value(source, namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    return outputs + [_figure() for _ in plt.get_fignums()]


def _value(source: str, namespace: dict[str, Any]) -> Any:
    """The value of the last line, if it is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


def _figure() -> dict[str, Any]:
    """The first open figure, which is closed."""
    figure, png = plt.figure(plt.get_fignums()[0]), io.BytesIO()
    figure.savefig(png, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    shown = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": ["<Figure>"]}
    return {"output_type": "display_data", "metadata": {}, "data": shown}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    main(sys.argv[1:])
