"""Imports of version 0.1 that lead elsewhere now."""

import inspect
import pickle
import re
import subprocess
import sys
from importlib import import_module, reload
from importlib.util import find_spec

import pytest

import lesioncount
from lesioncount.deprecation import GONE_IN
from lesioncount.moved import _MOVED, _RENAMED

NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra [torch]")
NAMES = [
    pytest.param(old, new, name, marks=[NEEDS_TORCH] if old == "lesioncount.models" else [])
    for old, places in _MOVED.items()
    for new, names in places.items()
    for name in names
]


def fresh(code):
    """What a new process prints, where nothing of the package was imported before."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(("old", "new", "name"), NAMES)
def test_every_name_leads_to_where_it_is_now(old, new, name):
    module = import_module(old)
    there = _RENAMED.get(f"{old}.{name}", name)
    told = rf"^{old}.{name} is deprecated and goes in version 0\.3: use {new}.{there}\.$"
    with pytest.warns(DeprecationWarning, match=told) as caught:
        found = getattr(module, name)
    assert found is getattr(import_module(new), there)
    assert [warning.filename for warning in caught] == [__file__]
    assert name in dir(module)
    assert new in module.__doc__


@pytest.mark.parametrize(
    "statement",
    [
        "from lesioncount.batch import count_batch",
        "from lesioncount.io import count_file, open_map",
        "from lesioncount.cohorts import GadCohort",
        pytest.param("from lesioncount.models import counting_network", marks=NEEDS_TORCH),
    ],
)
def test_documented_imports_still_work(statement):
    with pytest.warns(DeprecationWarning, match=statement.split()[1]):
        exec(statement, {})  # noqa: S102 - the statement is a parameter


@pytest.mark.parametrize(
    ("package", "module", "name"),
    [
        ("monai", "lesioncount.integrations.monai", "CountMetric"),
        ("torch", "lesioncount.integrations.nnunet_loss", "CountWeight"),
        ("torch", "lesioncount.torch", "CountLoss"),
        ("torchmetrics", "lesioncount.integrations.torchmetrics", "CountAccuracy"),
    ],
)
def test_other_documented_names_are_where_they_were(package, module, name):
    pytest.importorskip(package)
    assert hasattr(import_module(module), name)


def test_a_star_import_brings_what_was_there():
    namespace = {}
    with pytest.warns(DeprecationWarning, match=r"lesioncount\.io"):
        exec("from lesioncount.io import *", namespace)  # noqa: S102 - only a module may have a star import
    assert {name for name in namespace if not name.startswith("__")} == {
        "MapSource", "ScanCount", "count_file", "open_map",
    }  # fmt: skip


@pytest.mark.parametrize("module", sorted(_MOVED))
def test_other_names_are_not_there(module):
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'np'"):
        getattr(import_module(module), "np")  # noqa: B009 - it must fail
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec(f"from {module} import nothing")  # noqa: S102 - the module is a parameter
    with pytest.raises(ModuleNotFoundError, match="is not a package"):
        import_module(f"{module}.formats")


@pytest.mark.parametrize("module", ["lesioncount.ios", "lesioncount.scores.nothing", "lesioncount.scoress"])
def test_other_modules_are_not_found(module):
    with pytest.raises(ModuleNotFoundError):
        import_module(module)


@pytest.mark.parametrize("name", ["scores", "fitting"])
@pytest.mark.parametrize(
    "first",
    [
        "import lesioncount.{0} as short",
        "from lesioncount import {0} as short",
        "import lesioncount as lc; short = lc.{0}",
        "import lesioncount.trust.{0}, lesioncount.{0} as short",
    ],
)
def test_public_modules_are_the_same_by_either_name(name, first):
    then = "import lesioncount.{0}, lesioncount.trust.{0} as long; print(short is long is lesioncount.{0})"
    assert fresh(f"{first}; {then}".format(name)) == ["True"]


def test_modules_in_public_modules_are_not_loaded_twice():
    code = "import lesioncount.scores.proper as short, lesioncount.trust.scores as long; print(short is long.proper)"
    assert fresh(code) == ["True"]
    from lesioncount.scores import rps

    assert rps is lesioncount.scores.rps is lesioncount.trust.scores.rps


def test_public_modules_know_their_own_name():
    assert lesioncount.scores.__name__ == lesioncount.scores.__spec__.name == "lesioncount.trust.scores"
    assert reload(lesioncount.scores) is lesioncount.trust.scores


def test_a_folder_that_an_older_checkout_left_is_no_module(tmp_path, monkeypatch):
    (tmp_path / "io" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(lesioncount, "__path__", [*lesioncount.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "lesioncount.io", raising=False)
    assert "open_map" in dir(import_module("lesioncount.io"))


@pytest.mark.parametrize(
    ("expression", "old", "new"),
    [
        ("lc.scores.Score", "lesioncount.scores.Score", "lesioncount.scores.Estimate"),
        ("lc.scores.Estimate(0.5).estimate", "Estimate.estimate", "Estimate.value"),
        ("lc.Calibration(missed_rate=0.5)", "Calibration(missed_rate=…)", "extra_rate="),
        ("lc.Calibration(extra_rate=0.5).missed_rate", "Calibration.missed_rate", "Calibration.extra_rate"),
    ],
)
def test_old_names_say_what_to_write_and_until_when(expression, old, new):
    told = rf"^{re.escape(old)} is deprecated and goes in version 0\.3: use {re.escape(new)}\.$"
    with pytest.warns(DeprecationWarning, match=told) as caught:
        found = eval(expression, {"lc": lesioncount})  # noqa: S307 - the expression is a parameter
    assert [warning.filename for warning in caught] == ["<string>"]
    expected = {
        "lc.scores.Score": lesioncount.scores.Estimate,
        "lc.Calibration(missed_rate=0.5)": lesioncount.Calibration(extra_rate=0.5),
    }
    assert found == expected.get(expression, 0.5)


def test_old_names_outlive_one_release_and_no_more():
    """Whoever raises the version to that in which they go is reminded to remove them."""
    now, gone = (tuple(map(int, text.split(".")[:2])) for text in (lesioncount.__version__, GONE_IN))
    assert now < gone


def test_what_old_names_stand_for_is_checked_as_ever():
    assert "missed_rate" not in inspect.signature(lesioncount.Calibration).parameters
    with pytest.raises(AttributeError, match="has no attribute 'Scores'"):
        lesioncount.scores.Scores  # noqa: B018 - it must fail


def test_objects_survive_pickling():
    objects = [
        lesioncount.Calibration(slope=0.9),
        lesioncount.MixtureOfCounts([lesioncount.PoissonBinomial([0.2, 0.7])]),
        lesioncount.CountingProtocol(threshold=0.3),
    ]
    for it in objects:
        assert repr(pickle.loads(pickle.dumps(it))) == repr(it)  # noqa: S301 - our own bytes
    for it in (lesioncount.Calibration, lesioncount.scores.rps, lesioncount.scores.Estimate):
        assert pickle.loads(pickle.dumps(it)) is it  # noqa: S301 - our own bytes
