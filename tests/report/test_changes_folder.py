"""The page of many patients: a folder of sections that are made once and kept while they are right; what is stale."""

import json
import re

import pytest
from change_pairs import NEW, OLD, save_pair
from html_page import Page

from lesioncount.errors import MapFileError
from lesioncount.runs import compare_batch

pytest.importorskip("matplotlib", reason="needs the extra [report]")
pytest.importorskip("jinja2", reason="needs the extra [report]")

from lesioncount.report import CourseSectionWriter, write_changes_page
from lesioncount.report.change_page import FEW_PATIENTS

N_PATIENTS = 4


@pytest.fixture
def many(monkeypatch):
    """Three patients are many, so that tests take no time."""
    monkeypatch.setattr("lesioncount.report.change_page.FEW_PATIENTS", 3)


@pytest.fixture
def maps(tmp_path):
    for patient in range(N_PATIENTS):
        save_pair(tmp_path / "maps", f"p{patient}", {OLD: 0.9}, {OLD: 0.9, NEW: 0.5 + patient / 10})
    return tmp_path / "maps"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def compared(maps, out, **options):
    return compare_batch([maps / "before", maps / "after"], out, **options)


def section(out, patient):
    text = (out / "changes" / f"{patient}.js").read_text("utf-8")
    return json.loads(re.search(r"lesioncountSection\((.*)\);\n", text)[1])


def drawn_by(results):
    drawn = []
    write_changes_page(results, progress=lambda done, total: drawn.append((done, total)))
    return drawn


def test_up_to_forty_patients_are_one_file():
    assert FEW_PATIENTS == 40


@pytest.mark.usefixtures("many")
def test_every_patient_has_a_section_of_its_own(maps, out):
    page = Page(write_changes_page(compared(maps, out)).read_text("utf-8"))
    assert {path.name for path in (out / "changes").iterdir()} == {f"p{i}.js" for i in range(N_PATIENTS)}
    assert not page.all("details")
    assert "files in the folder changes beside this page" in page.text
    (opened,) = page.all("div", id="opened")
    assert opened["data-first"] == "#patient-4"  # with the most changes expected
    content = section(out, "p2")
    assert content["scan"] == "p2"
    assert "0.70 new (0 to 1)" in content["summary"]
    assert len(Page(content["body"]).all("article")) == 2


@pytest.mark.usefixtures("many")
def test_pictures_are_made_while_maps_are_compared(maps, out):
    results = compared(maps, out, show=CourseSectionWriter(), jobs=2)
    for path in maps.glob("*/*.nii.gz"):
        path.unlink()
    assert drawn_by(results) == []
    assert Page(section(out, "p0")["body"]).all("image")


def test_one_page_takes_the_pictures_that_were_made_while_comparing(maps, out):
    results = compared(maps, out, show=CourseSectionWriter())
    assert (out / "changes").is_dir()
    for path in maps.glob("*/*.nii.gz"):
        path.unlink()
    page = Page(write_changes_page(results).read_text("utf-8"))
    assert len(page.all("article")) == 2 * N_PATIENTS
    assert not (out / "changes").exists()


@pytest.mark.usefixtures("many")
def test_only_what_changed_is_drawn_again(maps, out):
    assert drawn_by(compared(maps, out)) == [(i + 1, N_PATIENTS) for i in range(N_PATIENTS)]
    save_pair(maps, "p2", {OLD: 0.9}, {OLD: 0.9, NEW: 0.95})
    assert drawn_by(compared(maps, out, resume=True)) == [(1, 1)]
    assert "0.95 new" in section(out, "p2")["summary"]
    assert drawn_by(compared(maps, out, resume=True)) == []


@pytest.mark.usefixtures("many")
def test_pictures_of_another_run_are_never_shown(maps, out):
    """Of a run that was stopped, sections may be left: those that do not belong to the records are made again."""
    compared(maps, out, show=CourseSectionWriter())
    stale = (out / "changes" / "p1.js").read_bytes()
    save_pair(maps, "p1", {}, {NEW: 0.99})
    results = compared(maps, out, resume=True, show=CourseSectionWriter())
    right = (out / "changes" / "p1.js").read_bytes()
    assert right != stale
    (out / "changes" / "p1.js").write_bytes(stale)
    assert drawn_by(results) == [(1, 1)]
    assert (out / "changes" / "p1.js").read_bytes() == right


def test_overwriting_removes_a_page_that_is_not_made_again(maps, out):
    write_changes_page(compared(maps, out))
    assert (out / "changes.html").exists()
    compared(maps, out, overwrite=True)
    assert not (out / "changes.html").exists()


@pytest.mark.usefixtures("many")
def test_overwriting_removes_the_page_also_if_it_is_interrupted(maps, out):
    write_changes_page(compared(maps, out))
    (out / "changes" / "mine.js").write_text("// a script of my own\n")

    def stop(*_):
        raise KeyboardInterrupt

    assert compared(maps, out, overwrite=True, progress=stop).interrupted
    assert not (out / "changes.html").exists()
    assert [path.name for path in (out / "changes").iterdir()] == ["mine.js"]


@pytest.mark.usefixtures("many")
def test_sections_of_patients_that_are_no_longer_there_go(maps, out):
    save_pair(maps, "p9", {}, {NEW: 0.9})
    write_changes_page(compared(maps, out))
    for path in maps.glob("*/p9.nii.gz"):
        path.unlink()
    write_changes_page(compared(maps, out, overwrite=True))
    assert {path.stem for path in (out / "changes").iterdir()} == {f"p{i}" for i in range(N_PATIENTS)}


@pytest.mark.usefixtures("many")
def test_section_that_somebody_changed_is_not_replaced(maps, out):
    (out / "changes").mkdir(parents=True)
    (out / "changes" / "p0.js").write_text("mine")
    results = compared(maps, out, show=CourseSectionWriter())
    with pytest.raises(MapFileError, match=r"p0\.js is not a result of an earlier run"):
        write_changes_page(results)
    assert (out / "changes" / "p0.js").read_text() == "mine"


def test_record_that_is_gone_while_the_page_is_made(maps, out):
    results = compared(maps, out)
    (out / "p1.json").unlink()
    with pytest.raises(MapFileError, match=r"p1\.json is not there"):
        write_changes_page(results)
