"""The reference: every public name has an entry, says what its docstring says, and all commands are told."""

import ast
import importlib.util
import inspect
import math
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from lesioncount.changes.coupling import DEFAULT_COUPLING

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted(REFERENCE.glob("*.md"))
# Modules whose public names a user may import, and what they need.
PUBLIC = {
    "lesioncount": None,
    "lesioncount.errors": None,
    "lesioncount.questions": None,
    "lesioncount.regions": None,
    "lesioncount.report": "jinja2",
    "lesioncount.runs": None,
    "lesioncount.assess.evaluation": None,
    "lesioncount.assess.groups": None,
    "lesioncount.trust.fitting": None,
    "lesioncount.trust.scores": None,
    "lesioncount.torch": "torch",
    "lesioncount.integrations.monai": "monai",
    "lesioncount.integrations.napari": None,
    "lesioncount.integrations.nnunet_loss": "torch",
    "lesioncount.integrations.torchmetrics": "torchmetrics",
}
# Modules that are public as such, and have a page of names each.
IN_PARTS = {"fitting", "scores"}


def built_by(name):
    """A module of docs/building, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_building_{name}", ROOT / "docs" / "building" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def names():
    return built_by("names")


def public_names(module):
    """``__all__``, or what is defined in the module and has no underscore."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in getattr(module, "__all__", own) if not re.match("_(?!_)", name)]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_entry(module, names):
    if PUBLIC[module]:
        pytest.importorskip(PUBLIC[module], reason="needs the extra [all]")
    documented = [name for page in PAGES for name in names.names_on(page.read_text("utf-8"))]
    needed = [name for name in documented if ".nnunet." not in name and not _is_out_of_reach(name)]
    entries = [names.named(name) for name in needed]
    found = import_module(module)
    missing = [name for name in public_names(found) if not any(getattr(found, name) is entry for entry in entries)]
    needless = IN_PARTS | {"reason_of", "listed"}
    assert set(missing) - needless == set(), "add rows to a table in docs/reference, then names.py"


def _is_out_of_reach(name):
    packages = {"lesioncount.torch": "torch", "lesioncount.integrations.monai": "monai"}
    packages |= {"lesioncount.integrations.torchmetrics": "torchmetrics", "lesioncount.integrations.nnunet": "torch"}
    return any(name.startswith(module) and find_spec(package) is None for module, package in packages.items())


def test_no_name_has_two_entries(names):
    documented = [name for page in PAGES for name in names.names_on(page.read_text("utf-8"))]
    assert len(set(documented)) == len(documented) > 100


def documented_defaults(found):
    """Of a function or a class: the names of parameters, and the defaults that its docstring names."""
    lines = re.findall(r"^ *(\w[\w, ]*) : .*?, default (.+)$", inspect.getdoc(found) or "", re.MULTILINE)
    value_of = {"inf": math.inf}
    return {
        name: value_of[default] if default in value_of else ast.literal_eval(default)
        for names, default in lines
        for name in names.split(", ")
    }


@pytest.mark.parametrize("module", PUBLIC)
def test_docstrings_name_the_defaults_that_there_are(module):
    if PUBLIC[module]:
        pytest.importorskip(PUBLIC[module], reason="needs the extra [all]")
    found = import_module(module)
    wrong = []
    for name in public_names(found):
        value = getattr(found, name)
        said = documented_defaults(value) if inspect.isclass(value) or inspect.isfunction(value) else {}
        parameters = inspect.signature(value).parameters if said else {}
        wrong += [
            (name, parameter, default, parameters[parameter].default)
            for parameter, default in said.items()
            if parameter in parameters and default != parameters[parameter].default
        ]
    assert wrong == []


def test_the_default_coupling_is_told_where_it_was_chosen():
    page = (ROOT / "docs" / "over_time.md").read_text("utf-8")
    assert f"**coupling {DEFAULT_COUPLING:g}, the default**" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_say_what_docstrings_say(page, names):
    text = page.read_text("utf-8")
    assert names.refreshed(text) == text, "run: python docs/building/names.py"
    assert "|  |" not in text


def test_what_has_another_docstring_is_refreshed(names):
    row = "| `lesioncount.count_lesions` | Something else. |"
    first = inspect.getdoc(sys.modules["lesioncount"].count_lesions).splitlines()[0]
    assert names.refreshed(row) == f"| `lesioncount.count_lesions` | {first} |"
    constant = '| `lesioncount.PROTOCOLS` | Kept. |\n| `lesioncount.integrations.nnunet.nothing` | "Kept," too. |'
    assert names.refreshed(constant) == constant


@pytest.mark.usefixtures("installed_reproduction")
def test_commands_are_told_as_their_help_has_them():
    page = built_by("commands").page()
    assert (REFERENCE / "commands.md").read_text("utf-8") == page, "run: python docs/building/commands.py"
    assert "| `-o`, `--output FOLDER` |" in page


def test_every_page_is_in_the_navigation():
    """The site is built in strict mode, which would refuse it; here without building."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2].partition("\nvalidation:")[0]
    listed = re.findall(r"(\S+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(built_by("pages").pages())
