"""What a user sees of the package as a whole."""

import inspect
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import lesioncount
from lesioncount import demo, errors
from lesioncount.cli import main

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Source"]


def test_public_names():
    assert lesioncount.__all__ == [
        "PROTOCOLS", "Calibration", "Candidate", "CandidateTable", "Candidates", "ConformalCounts", "CountTable",
        "CountingProtocol", "LesionChanges", "LesionCount", "MixtureOfCounts", "NamedProtocol", "PoissonBinomial",
        "Regions", "ScanCount", "StreamingCounter", "__version__", "calibrate", "compare", "compare_files",
        "connected_component_count", "count_candidates", "count_file", "count_files", "count_lesions", "count_volume",
        "errors", "evaluate", "existence_probabilities", "find_candidates", "fitting", "load_calibration",
        "read_candidates", "read_changes",
        "read_results", "scores",
    ]  # fmt: skip
    assert all(hasattr(lesioncount, name) for name in lesioncount.__all__)
    assert set(lesioncount.__all__) <= set(dir(lesioncount))


def test_public_names_can_be_imported_in_any_way():
    names = ", ".join(lesioncount.__all__)
    for code in (f"from lesioncount import {names}", f"from lesioncount import *; {names}"):
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_names_that_are_not_there_are_refused():
    assert not hasattr(lesioncount, "nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'lesioncount'"):
        from lesioncount import nothing  # noqa: F401 - it must fail


def test_names_that_come_later_are_listed_before_they_come():
    code = "import lesioncount; print('Calibration' in dir(lesioncount), 'Calibration' in vars(lesioncount))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@pytest.mark.parametrize(
    ("package", "module", "name"),
    [
        ("monai", "lesioncount.integrations.monai", "CountMetric"),
        ("torch", "lesioncount.integrations.nnunet_loss", "CountWeight"),
        ("torch", "lesioncount.torch", "CountLoss"),
        ("torchmetrics", "lesioncount.integrations.torchmetrics", "CountAccuracy"),
    ],
)
def test_documented_names_of_integrations_are_there(package, module, name):
    pytest.importorskip(package)
    assert hasattr(import_module(module), name)


@pytest.mark.parametrize("name", ["scores", "fitting"])
@pytest.mark.parametrize("first", ["from lesioncount import {0} as short", "import lesioncount as lc; short = lc.{0}"])
def test_public_modules_are_those_of_trust(name, first):
    code = f"{first}; import lesioncount.trust.{{0}} as long; assert short is long".format(name)
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


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


def test_version_is_that_of_the_package():
    assert lesioncount.__version__ == version("lesioncount")
    assert f"## {lesioncount.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"version: {lesioncount.__version__}" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_every_error_is_in_the_tree_and_has_two_bases():
    for name, error in inspect.getmembers(errors, inspect.isclass):
        assert name in errors.__doc__
        if issubclass(error, Exception) and not issubclass(error, Warning) and error is not errors.LesionCountError:
            assert issubclass(error, errors.LesionCountError)
            assert issubclass(error, ValueError | TypeError | RuntimeError | OSError | ImportError)


def test_import_loads_nothing_heavy():
    heavy = [
        "torch",
        "scipy",
        "matplotlib",
        "pandas",
        "tifffile",
        "PIL",
        "nibabel",
        "rich",
        "concurrent.futures",
        "importlib.resources",
    ]
    code = f"import sys, lesioncount; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_demo_counts_its_maps_and_says_how_close_they_came(tmp_path, capsys):
    folder = tmp_path / "demo"
    assert demo.main(["--output", str(folder)]) == 0
    shown = capsys.readouterr().out
    truth = dict(line.split("\t") for line in (folder / "counts.tsv").read_text().splitlines()[1:])
    new = [path.name.removesuffix(".nii.gz") for path in (folder / "new").iterdir()]
    for name in new:
        assert re.search(rf"^{name} +{truth[name]} ", shown, re.MULTILINE)
    assert len(truth) - len(new) >= 40
    for page in ("results/probs/report.html", "results/evaluation/evaluation.html", "results/new/report.html"):
        assert (folder / page).stat().st_size > 10_000
        assert page in shown
    assert "Of 84 scans 49 have a certain count: all of them are right. 35 are doubtful: 51 % are right." in shown
    assert re.search(r"off by 0\.\d\d lesions on average, calibrated 0\.\d\d \(held out\), and by 0\.\d\d if", shown)
    assert demo.main(["--output", str(folder), "--only-files"]) == 0  # again, over what is there


def test_demo_replaces_no_file_of_others(tmp_path, capsys):
    (tmp_path / "counts.tsv").write_text("mine")
    with pytest.raises(errors.MapFileError, match=r"counts\.tsv is not a result"):
        demo.main(["--output", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir() if path.is_file() and path.name[0] != "."] == ["counts.tsv"]
    capsys.readouterr()


def commands_of(text):
    """The commands of a page, in their order; where some lines begin with $, the others are what is printed."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        typed = [line[2:] for line in lines if line.startswith("$ ")]
        yield from (line for line in typed or lines if line.startswith("lesioncount "))
    yield from re.findall(r"`(lesioncount [^`]+ -o [^`]+)`", text)


@pytest.mark.parametrize("page", ["README.md", "docs/trust.md"])
def test_every_command_of_a_page_can_be_followed_on_the_demo(page, tmp_path, monkeypatch, capsys):
    demo.write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    shutil.copy("new/sub-141_ses-01.nii.gz", "scan.nii.gz")
    commands = [shlex.split(line, comments=True)[1:] for line in commands_of((ROOT / page).read_text("utf-8"))]
    followed = [command for command in commands if command[0] != "reproduce"]  # it makes its own cohort, in an hour
    for command in followed:
        assert main(command) == 0, (command, capsys.readouterr().err)
    assert len(followed) >= 5
    assert not {"--scale", "--channel"} & {part for command in followed for part in command}
    capsys.readouterr()


def test_example_maps_are_the_same_for_the_same_seed():
    for name, probabilities in demo.example_maps(seed=3).items():
        assert (probabilities == demo.example_maps(seed=3)[name]).all()


def test_readme_shows_what_the_example_prints():
    text = (ROOT / "README.md").read_text("utf-8")
    shown = re.search(r"^print\(result\)\n```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    printed = str(lesioncount.count_lesions(demo.example_maps()["unsure"], spacing_mm=(3, 1, 1)))
    assert shown.strip() == printed


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
)
@pytest.mark.filterwarnings("ignore:.*num_workers:UserWarning", "ignore:.*logging interval:UserWarning")  # of Lightning
def test_python_blocks_of_the_documentation_run(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    namespace = {}
    for block in blocks:
        if "torch" in block and find_spec("torch") is None:
            pytest.skip("needs the extra [train]")
        if "lesioncount_reproduction" in block and find_spec("lesioncount_reproduction") is None:
            pytest.skip("needs the reproduction: pip install ./reproduction")
        if "statsmodels" in block and find_spec("statsmodels") is None:
            pytest.skip("needs the extra [stats]")
        if "to_dataframe" in block and None in (find_spec("pandas"), find_spec("matplotlib")):
            pytest.skip("needs the extra [notebook]")
        exec(compile(block, page, "exec"), namespace)  # noqa: S102 - our own documentation
    capsys.readouterr()


def test_the_readme_begins_with_what_works_in_a_clone():
    text = (ROOT / "README.md").read_text("utf-8")
    first = re.search(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    typed = [line.partition("#")[0].strip() for line in first[1].splitlines()]
    assert typed[:3] == ["make demo", "make test", "pip install '.[report]'"]
    assert typed[-1].startswith("lesioncount count ")


def test_the_readme_has_no_other_kind_of_link():
    text = (ROOT / "README.md").read_text("utf-8")
    assert not re.search(r"^\[[^]]+\]:|\]\[|\b(?:src|href)=", text, re.MULTILINE)


def test_the_repository_is_the_same_everywhere():
    assert PROJECT["urls"] == {"Source": REPOSITORY, "Issues": f"{REPOSITORY}/issues"}
    assert f"repository-code: {REPOSITORY}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"  repository: {REPOSITORY}\n" in (ROOT / "conda" / "recipe" / "recipe.yaml").read_text("utf-8")
