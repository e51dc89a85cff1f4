"""The whole of it, small: everything is trained, attacked, written, and not done twice."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytest.importorskip("matplotlib", reason="needs the extra [report]")
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),  # of Lightning and MONAI
    pytest.mark.usefixtures("installed_reproduction"),
]

from html_page import Page  # noqa: E402 - after the checks

from lesioncount.cli import main  # noqa: E402
from lesioncount.errors import ConfigError  # noqa: E402
from lesioncount_reproduction.experiments.presets import recipe_of  # noqa: E402
from lesioncount_reproduction.experiments.reproduce import EXPERIMENTS, _jobs, reproduce  # noqa: E402
from lesioncount_reproduction.experiments.result import Result, load_results, on_white  # noqa: E402
from lesioncount_reproduction.experiments.results_page import QUESTIONS  # noqa: E402
from lesioncount_reproduction.experiments.study import Study  # noqa: E402

FIGURES = {
    "threshold": {"accuracy", "confusion"},
    "calibration": {"reliability", "existence"},
    "uncertainty": {"certainty", "entropy"},
    "multitask": {"multitask"},
    "lowdata": {"lowdata"},
    "adversarial": {"success"},
    "which": {"ways"},
}
CLAIMS = {
    "threshold": [1, 2],
    "calibration": [5],
    "uncertainty": [3, 4],
    "multitask": [6, 7],
    "lowdata": [8],
    "which": [],
}


def run(*arguments):
    return main(["reproduce", *map(str, arguments)])


def cpu_seconds():
    """Of this process and of those that it has waited for: on a busy machine, a clock says little."""
    return sum(os.times()[:4])


def plain(result):
    """As values that can be compared: what is no number is not equal to itself, and a file has colours of its own."""
    tables, claims = ([one.to_dict() for one in of] for of in (result.tables, result.claims))
    figures = [(one.name, one.label) for one in result.figures]
    return json.dumps([result.basis, list(result.seeds), tables, claims, figures])


def written(folder, name):
    return Result.load(folder / f"synthetic-{name}.json")


def kept(folder):
    return {path: path.stat().st_mtime_ns for path in (folder / "cache").rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The folder of a smoke test, which is not changed; and what it said."""
    folder = tmp_path_factory.mktemp("smoke") / "out"
    began = cpu_seconds()
    assert run("--preset", "smoke", "-o", folder, "--jobs", 2, "--quiet") == 0
    assert cpu_seconds() - began < 180
    return folder


@pytest.fixture
def copied(smoke, tmp_path):
    """Results without what they were made from."""
    return shutil.copytree(smoke, tmp_path / "copied", ignore=shutil.ignore_patterns("cache"))


def test_every_experiment_leaves_numbers_tables_and_figures(smoke):
    for name in EXPERIMENTS:
        result = written(smoke, name)
        assert (result.experiment, result.data_set, result.preset, result.seeds) == (name, "synthetic", "smoke", (0,))
        assert {figure.name for figure in result.figures} >= FIGURES[name]
        assert [claim.number for claim in result.claims] == CLAIMS.get(name, [9])
        text = (smoke / f"synthetic-{name}.md").read_text("utf-8")
        assert all(f"**{table.title}**" in text for table in result.tables)
        for figure in result.figures:
            drawing = smoke / "figures" / f"synthetic-{name}-{figure.name}.svg"
            assert ET.parse(drawing).getroot().tag.endswith("svg")  # noqa: S314 - our own file
    assert set(EXPERIMENTS) == set(QUESTIONS)


def test_the_page_has_all_of_them(smoke):
    page = Page((smoke / "reproduce.html").read_text("utf-8"))
    results = load_results(smoke)
    assert len(results) == len(EXPERIMENTS)
    assert len(page.all("img")) == sum(len(result.figures) for result in results)
    assert len(page.all("table")) == sum(len(result.tables) for result in results)
    for question, _ in QUESTIONS.values():
        assert question in page.text
    assert "smoke test" in page.text
    assert not page.all("script")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_needs_nothing_but_what_it_says(smoke, tmp_path, name):
    """So that it can be run without the others; and what was written is what it finds again."""
    study = Study("synthetic", "smoke", recipe_of("smoke", "synthetic"), (0,), tmp_path)
    wanted = list(EXPERIMENTS[name].needs(study))
    if name == "which":  # it also says how long trainings took
        wanted += [need for job in wanted for need in job.needs]
    for job in {job.key: job for job in wanted}.values():
        here, there = (job.path(of) for of in (tmp_path, smoke / "cache"))
        here.parent.mkdir(exist_ok=True)
        here.symlink_to(there)
    result = EXPERIMENTS[name].run(study)
    again = written(smoke, name)
    assert plain(again) == plain(result)
    assert [figure.document for figure in again.figures] == [on_white(figure.file) for figure in result.figures]


def test_nothing_is_trained_again_from_the_small_files_alone(smoke, tmp_path, capsys):
    """As in a fresh checkout, where networks are not."""
    here = shutil.copytree(smoke / "cache", tmp_path / "here" / "cache", ignore=shutil.ignore_patterns("networks"))
    before = kept(here.parent)
    began = cpu_seconds()
    out = tmp_path / "again"
    assert run("--preset", "smoke", "-o", out, "--jobs", 2, "--cache", here) == 0
    assert cpu_seconds() - began < 60
    assert kept(here.parent) == before
    said = capsys.readouterr().out
    assert not [line for line in said.splitlines() if line.startswith("[")]  # no job was done
    assert "threshold, synthetic: written" in said
    assert "Everything runs. A smoke test says nothing about the claims." in said
    assert f"Written: {out / 'reproduce.html'}" in said
    assert not (out / "cache").exists()
    for result in load_results(out):
        assert plain(result) == plain(written(smoke, result.experiment))


def test_some_experiments_can_be_chosen(smoke, tmp_path):
    out = tmp_path / "some"
    chosen = ("calibration", "threshold")
    assert run(*chosen, "--preset", "smoke", "-o", out, "--cache", smoke / "cache", "--quiet") == 0
    assert sorted(path.name for path in out.glob("*.json")) == [f"synthetic-{name}.json" for name in chosen]


def test_a_page_is_written_of_results_alone(copied, capsys):
    (copied / "reproduce.html").unlink()
    results = {path.name: path.read_bytes() for path in copied.glob("*.json")}
    assert run("--report", copied) == 0
    assert "A smoke test says nothing about the claims" in capsys.readouterr().out
    assert len(Page((copied / "reproduce.html").read_text("utf-8")).all("table")) > 10
    assert {path.name: path.read_bytes() for path in copied.glob("*.json")} == results
    assert not (copied / "cache").exists()


def test_a_page_of_results_needs_no_torch(copied):
    program = (
        "import sys\nfrom lesioncount.cli import main\n"
        "assert main(['reproduce', '--report', sys.argv[1], '--quiet']) == 0\n"
        "print([name for name in ('torch', 'lightning', 'monai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, copied], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_result_that_names_a_file_of_others_is_refused(copied, tmp_path, capsys):
    path = copied / "synthetic-threshold.json"
    content = json.loads(path.read_text("utf-8"))
    content["figures"][0]["name"] = "../../x"
    path.write_text(json.dumps(content), "utf-8")
    (tmp_path / "x.svg").write_text("<svg/>")
    assert run("--report", copied) == 2
    said = capsys.readouterr().err
    assert (
        "synthetic-threshold.json is not a result of lesioncount reproduce: '../../x' is not the name of a figure."
        in said
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["thresholds"],
            "'thresholds' is not an experiment. Choose from threshold, calibration, uncertainty, multitask",
        ),
        (["--preset", "desktop"], "'desktop' is not a preset. Choose from smoke, laptop, evening."),
        (["--data", "leaf"], "Expected --data leaf=FOLDER."),
        (["--data", "leaf="], "Expected --data leaf=FOLDER."),
        (["--data", "synthetic=here"], "Expected --data synthetic, without a folder."),
        (["--data", "leaf=a", "--data", "leaf=b"], "Expected each data set once, but got leaf=a, leaf=b."),
        (["--data", "gad=here"], "'gad' is not a data set. Choose from synthetic, leaf, nuclei, lidc."),
        (["--data", "nuclei"], "Expected --data nuclei=FOLDER."),
        (["--data", "nuclei=nowhere"], "There is no data set in nowhere: No such file or directory"),
        (["--data", "leaf=nowhere"], "There is no data set in nowhere: No such file or directory"),
        (["threshold", "--data", "lidc=."], "Of lidc there is only the experiment which."),
        (["lowdata", "--data", "nuclei=."], "Of nuclei there are only the experiments threshold, calibration"),
        (["--report", "."], "There are no results of lesioncount reproduce in ."),
        (["--report", "nowhere"], "There are no results of lesioncount reproduce in nowhere."),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_trained(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--seeds", "--jobs"])
def test_numbers_below_one_are_refused(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(option, 0)
    assert option in capsys.readouterr().err


def test_all_of_the_first_seed_is_done_before_the_others():
    """Stopped early, a run has something to show."""
    recipe = recipe_of("smoke", "synthetic")
    study = Study("synthetic", "smoke", recipe, (0, 1, 2), Path("nowhere"))
    jobs = _jobs([study], list(EXPERIMENTS))
    seeds = [job.arm.config.run.seed for job in jobs]
    assert seeds == sorted(seeds)
    assert [seeds.count(seed) for seed in range(3)] == [len(jobs) // 3] * 3


def test_no_seed_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="Expected at least 1 seed, but got 0"):
        reproduce(tmp_path, n_seeds=0)


@pytest.fixture
def some_leaves(shared_data, tmp_path):
    """Every tenth of the photographs: all of them take a minute to read."""
    whole = shared_data / "coffee_leaf_lesions"
    if not (whole / "counts.csv").exists():
        pytest.skip(f"needs the photographs of leaves in {whole.parent.name}/{whole.name}, which are not here")
    folder = tmp_path / "leaves"
    folder.mkdir()
    head, *lines = (whole / "counts.csv").read_text("utf-8").splitlines()
    (folder / "counts.csv").write_text("\n".join([head, *lines[::10]]) + "\n", "utf-8")
    for kind in ("images", "masks"):
        (folder / kind).symlink_to(whole / kind)
    return folder


@pytest.mark.slow
def test_leaves_are_cross_validated(some_leaves, tmp_path):
    out = tmp_path / "out"
    chosen = ("threshold", "adversarial")
    assert run(*chosen, "--preset", "smoke", "--data", f"leaf={some_leaves}", "-o", out, "--jobs", 2, "--quiet") == 0
    tested, attacked = load_results(out)
    assert (tested.data_set, tested.n_scans, tested.n_patients) == ("leaf", 50, 50)
    assert attacked.n_scans == attacked.n_patients <= 8  # four in each of two folds
    assert [figure.name for figure in attacked.figures] == ["success"]  # photographs of others are not shown


@pytest.mark.slow
def test_nuclei_are_counted_in_classes_and_in_numbers(shared_data, tmp_path):
    folder = shared_data / "nuclei"
    if not (folder / "nuclei.npz").exists():
        pytest.skip(f"needs the images of nuclei in {folder.parent.name}/{folder.name}, which are not here")
    out = tmp_path / "out"
    assert (
        run(
            "which", "adversarial", "--preset", "smoke", "--data", f"nuclei={folder}", "-o", out, "--jobs", 2, "--quiet"
        )
        == 0
    )
    [found] = load_results(out)  # attacks on nuclei make no sense, and are left out
    assert (found.experiment, found.data_set, found.n_scans) == ("which", "nuclei", 200)
    table = found.tables[0]
    assert "0–10, 11–19, 20–29, 30–52, 53+" in table.note
    rows = {row[0]: row for row in table.rows}
    assert rows["peaks, calibrated"][1].value < rows["connected components, τ tuned"][1].value
