"""Results: written, read again, and shown, without anything that is not theirs."""

import json
import math
from dataclasses import replace

import msgspec
import pytest

pytest.importorskip("jinja2", reason="needs the extra [report]")

from html_page import Page

from lesioncount.errors import ExperimentError
from lesioncount.report.drawing import INK, Figure
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.claims import Claim, Evidence
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Column, Result, Table, load_results
from lesioncount_reproduction.experiments.results_page import QUESTIONS, write_page

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><text>count & more</text></svg>\n'
ESTIMATE = Estimate(0.5, 0.25, 0.75, (0.25, 0.75))


@pytest.fixture
def result():
    columns = (Column("method"), Column("accuracy, %", "percent"), Column("τ", "number"), Column("paper"))
    rows = (("<b>ours</b> | a", ESTIMATE, 0.1, "86.3"), ("cc", None, 1, ""))
    table = Table("table", "A table", columns, rows, "A note.")
    evidence = Evidence("accuracy", ESTIMATE, "percent", "above", 0.2)
    return Result(
        "threshold", "synthetic", "laptop", 7, 5, (0, 1), (table,), (Figure("accuracy", "A <figure>.", SVG),),
        (Claim(1, "synthetic", (evidence,), "7 test scans of 5 patients, 2 training seeds", "A remark."),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "kind", "unit", "text"),
    [
        (0.1234, "percent", False, "12.3"),
        (0.1234, "percent", True, "12.3 %"),
        (-0.05, "points", True, "−5.0 points"),
        (-0.00001, "points", True, "0.0 points"),
        (1.23e-5, "1e-5", False, "1.2"),
        (0.12345, "score", True, "0.123"),
        (math.nan, "score", False, "–"),
        (math.inf, "percent", False, "–"),
        (ESTIMATE, "percent", False, "50.0 [25.0, 75.0]"),
        (ESTIMATE, "percent", True, "50.0 % [25.0, 75.0]"),
        (Estimate(math.nan, math.nan, math.nan, (math.nan,)), "percent", True, "–"),
    ],
)
def test_numbers_as_they_are_read(value, kind, unit, text):
    assert written(value, kind, unit=unit) == text


def test_results_survive_files(result, tmp_path):
    result.save(tmp_path)
    assert Result.load(tmp_path / "synthetic-threshold.json") == result
    assert load_results(tmp_path) == [result]
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("[!.]*") if path.is_file()}
    assert names == {"synthetic-threshold.json", "synthetic-threshold.md", "figures/synthetic-threshold-accuracy.svg"}


def test_figures_are_legible_wherever_they_are_put(result, tmp_path):
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg">\n <defs>\n <path fill="{INK}"/></defs></svg>'
    replace(result, figures=(Figure("accuracy", "A figure.", drawing),)).save(tmp_path)
    text = (tmp_path / "figures" / "synthetic-threshold-accuracy.svg").read_text()
    assert INK not in text  # stands for the colour of a page
    assert text.index('fill="#ffffff"') < text.index('fill="#000000"')


def test_numbers_that_are_none_survive_files(result, tmp_path):
    nothing = Estimate(math.nan, math.nan, math.nan, (math.nan, 0.5))
    table = replace(result.tables[0], rows=(("ours", nothing, None, ""),))
    replace(result, tables=(table,)).save(tmp_path)
    json.loads((tmp_path / "synthetic-threshold.json").read_text(), parse_constant=pytest.fail)
    [again] = Result.load(tmp_path / "synthetic-threshold.json").tables
    found = again.rows[0][1]
    assert all(map(math.isnan, (found.value, found.low, found.high, found.seeds[0])))
    assert found.seeds[1] == 0.5


def test_tables_are_text_that_reads_well(result, tmp_path):
    result.save(tmp_path)
    text = (tmp_path / "synthetic-threshold.md").read_text()
    assert "7 test scans of 5 patients, 2 training seeds." in text
    assert "| method | accuracy, % | τ | paper |\n|---|---:|---:|---|\n" in text
    assert "| <b>ours</b> \\| a | 50.0 [25.0, 75.0] | 0.10 | 86.3 |" in text
    assert "| cc | – | 1.00 |  |" in text
    assert "A note." in text


def test_cells_are_split_into_value_interval_and_seeds():
    column = Column("accuracy, %", "percent")
    assert (column.value(ESTIMATE), column.interval(ESTIMATE)) == ("50.0", "[25.0, 75.0]")
    assert column.seeds(ESTIMATE) == "25.0, 75.0"
    assert column.seeds(msgspec.structs.replace(ESTIMATE, seeds=(0.5,))) == ""
    assert (column.value(0.5), column.interval(0.5)) == ("50.0", "")


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/passwd", "a/b", "..", "", "A", "accuracy\n", "accuracy.svg", 7, None]
)
def test_a_figure_is_a_file_of_the_results_and_no_other(result, tmp_path, name):
    result.save(tmp_path / "results")
    path = tmp_path / "results" / "synthetic-threshold.json"
    content = json.loads(path.read_text())
    content["figures"][0]["name"] = name
    path.write_text(json.dumps(content))
    reason = "is not the name of a figure" if isinstance(name, str) else "expected string"
    with pytest.raises(ExperimentError, match=f"is not a result of lesioncount reproduce: .*{reason}"):
        Result.load(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"figures": [1]}', '{"figures": []}'])
def test_files_that_are_no_results_are_refused(tmp_path, text):
    (tmp_path / "a-threshold.json").write_text(text)
    with pytest.raises(ExperimentError, match=r"a-threshold\.json is not a result of lesioncount reproduce"):
        load_results(tmp_path)


def test_content_that_makes_no_sense_is_refused(result, tmp_path):
    result.save(tmp_path)
    path = tmp_path / "synthetic-threshold.json"
    content = json.loads(path.read_text("utf-8"))
    table, claim = content["tables"][0], content["claims"][0]
    wrong = [
        {"format": 99},
        {"experiment": "other"},
        {"claims": [claim | {"number": 12}]},
        {"claims": [claim | {"evidence": [claim["evidence"][0] | {"side": "beside"}]}]},
        {"claims": [claim | {"evidence": [claim["evidence"][0] | {"kind": "colour"}]}]},
        {"tables": [table | {"rows": [[*row, "more"] for row in table["rows"]]}]},
        {"tables": [table | {"columns": [column | {"kind": "colour"} for column in table["columns"]]}]},
    ]
    for one in wrong:
        path.write_text(json.dumps(content | one), "utf-8")
        with pytest.raises(ExperimentError, match="is not a result of lesioncount reproduce"):
            Result.load(path)


def test_a_folder_without_results_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ExperimentError, match="There are no results"):
            load_results(folder)


def test_the_page_shows_everything_and_runs_nothing(result, tmp_path):
    other = replace(result, experiment="calibration", preset="smoke", claims=(), figures=())
    path = write_page(tmp_path, [other, result])
    assert path == tmp_path / "reproduce.html"
    page = Page(path.read_text("utf-8"))
    assert not page.all("script")
    assert not page.all("link")
    assert "alert" not in page.source
    assert [image["alt"] for image in page.all("img")] == ["A <figure>."]
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.all("img"))
    assert "<b>ours</b> | a" in page.text
    assert len(page.all("span", class_="verdict holds")) == 1
    assert "50.0 % [25.0, 75.0], should be above 20.0 %" in page.text
    assert "A remark." in page.text
    assert "smoke test" in page.text
    shown = [heading for heading in page.headings if "<span" in heading]
    assert [heading.split(" <")[0] for heading in shown] == [
        QUESTIONS[name][0] for name in ("threshold", "calibration")
    ]
