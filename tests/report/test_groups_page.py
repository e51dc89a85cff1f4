"""The page of a summary as a reader finds it."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from html_page import Page
from small_trial import counted, write_table

from lesioncount.assess.groups import summarize

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("statsmodels", reason="needs the extra [stats]")

from lesioncount.report.groups import write_summary_page


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial")
    counted(folder / "maps", folder / "out")
    return folder


def page_of(folder, summary):
    return Page(write_summary_page(folder, summary).read_text("utf-8"))


def test_the_question_is_answered_first(trial, tmp_path):
    page = page_of(tmp_path, summarize(trial / "out", by="arm"))
    assert "treated had fewer lesions than placebo: rate ratio 0." in page.text
    assert page.text.index("treated had fewer") < page.text.index("How many lesions do patients have?")
    assert page.headings == [
        "How many lesions do patients have?",
        "How much more or fewer than placebo?",
        "How many lesions are there altogether?",
        "How it was made",
    ]
    assert "Each patient has one scan" in page.text


def test_each_group_has_a_figure_and_figures_are_files(trial, tmp_path):
    page = page_of(tmp_path, summarize(trial / "out", by="arm"))
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert names == {"group-means", "group-ratios", "group-total-1", "group-total-2"}
    assert len(page.all("svg", class_="figure")) == 4
    assert all(figure["aria-label"] for figure in page.all("svg", class_="figure"))
    for path in (tmp_path / "figures").iterdir():
        ET.parse(path)  # noqa: S314 - our own file


def test_a_difference_that_is_not_clear_is_called_so(trial, tmp_path):
    write_table(tmp_path / "t.tsv", half=["a", "b"] * 6)
    page = page_of(tmp_path, summarize(trial / "out", by="half", participants=tmp_path / "t.tsv"))
    assert "b against a: no clear difference. The rate ratio is" in page.text


def test_more_is_called_more(trial, tmp_path):
    assert (
        "placebo had more lesions than treated"
        in page_of(tmp_path, summarize(trial / "out", by="arm", reference="treated")).text
    )


def test_what_cannot_be_known_is_not_printed(trial, tmp_path):
    write_table(tmp_path / "t.tsv", who=["alone", *["others"] * 11])
    page = page_of(tmp_path, summarize(trial / "out", by="who", participants=tmp_path / "t.tsv", reference="others"))
    assert "Whether alone had fewer lesions than others cannot be said: there is one patient only." in page.text
    assert "group-ratios" not in {path.stem for path in (tmp_path / "figures").iterdir()}
    row = re.search(r"<tr><th scope=\"row\"><span class=\"name\">alone</span>.*?</tr>", page.source)[0]
    assert "<small>" not in row
    assert "nan" not in page.text


def test_one_group_has_no_ratios(trial, tmp_path):
    write_table(tmp_path / "t.tsv", everyone=["all"] * 12)
    page = page_of(tmp_path, summarize(trial / "out", by="everyone", participants=tmp_path / "t.tsv"))
    assert page.headings[1] == "How many lesions are there altogether?"
    assert "(reference)" not in page.text


def test_rates_are_shown_where_there_is_an_exposure(trial, tmp_path):
    write_table(tmp_path / "t.tsv", years=[2] * 12)
    summary = summarize(trial / "out", by="arm", participants=tmp_path / "t.tsv", exposure="years")
    page = page_of(tmp_path, summary)
    assert "Rate per unit of years" in page.text
    assert "half as many lesions per unit of years" in page.text


def test_many_patients_and_many_lesions_fit_the_figure(trial, tmp_path):
    summary = summarize(trial / "out", by="arm")
    crowded = replace(summary.groups[0], expected=tuple(float(i % 90) for i in range(1000)))
    page = page_of(tmp_path, replace(summary, groups=(crowded, *summary.groups[1:])))
    assert len(page.source) < 400_000


def test_names_are_text_and_nothing_else(trial, tmp_path):
    text = (trial / "maps" / "participants.tsv").read_text()
    (tmp_path / "t.tsv").write_text(text.replace("placebo", "<script>alert(1)</script>$x$"))
    page = page_of(tmp_path, summarize(trial / "out", by="arm", participants=tmp_path / "t.tsv"))
    assert not page.all("script")
    assert "<script>" in page.text


def test_the_page_is_as_wide_as_a_phone(trial, tmp_path, browser):
    page = write_summary_page(tmp_path, summarize(trial / "out", by="arm"))
    for width in (1400, 420, 320):
        context = browser.new_context(viewport={"width": width, "height": 800})
        complaints = []
        shown = context.new_page()
        shown.on("console", lambda message, found=complaints: found.append(message.text))
        shown.goto(page.as_uri())
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        context.close()
