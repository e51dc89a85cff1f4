"""The table of very many scans: its rows come in files, after the page is shown."""

import shutil

import nibabel as nib
import numpy as np
import pytest
from html_page import Page

from lesioncount.runs.count import count_batch

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from lesioncount.report import SectionWriter, write_report

N_SCANS, AT_ONCE = 130, 100
ODD = "a&b <i>'1'"


def make_maps(folder, n_scans):
    folder.mkdir()
    for scan in range(n_scans):
        probabilities = np.zeros((12, 12, 12), np.float32)
        for place in range(1 + scan % 3):
            probabilities[4 * place : 4 * place + 2, 2:4, 2:4] = 0.9 - scan / 1000 - place / 5
        name = ODD if scan == 1 else f"sub-{scan:03}"
        nib.Nifti1Image(probabilities, np.eye(4)).to_filename(folder / f"{name}.nii.gz")
    (folder / "broken.nii.gz").write_bytes(b"no map")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The results of scans that are taken to be very many, with records and sections in folders."""
    folder = tmp_path_factory.mktemp("pages")
    make_maps(folder / "maps", N_SCANS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lesioncount.results.record_files.MANY_SCANS", 50)
        patch.setattr("lesioncount.report.section_folder.PAGED_FROM", 50)
        patch.setattr("lesioncount.report.section_folder._ROWS_OF_PART", 30)
        write_report(count_batch([folder / "maps"], folder / "out", show=SectionWriter()))
        yield folder / "out"


@pytest.fixture
def opened(open_page, out):
    """Opens the page and waits for its rows."""
    return lambda hash_="": open_page((out / "report.html").as_uri() + hash_, wait_for="#opened details")


def names(page):
    return page.eval_on_selector_all("#scans tbody tr .name", "all => all.map(one => one.textContent)")


def name_of(scan):
    return f"sub-{scan:03}"


def test_the_page_itself_has_the_first_rows_only(out):
    page = Page((out / "report.html").read_text("utf-8"))
    assert len([row for row in page.all("tr") if "data-is" in row]) == AT_ONCE
    assert sorted(path.name for path in (out / "report" / "table").iterdir()) == [f"{part}.js" for part in range(5)]


def test_nothing_is_written_when_nothing_changed_and_lost_rows_are_made_again(out):
    before = (out / "report.html").stat().st_mtime_ns
    write_report(out)
    assert (out / "report.html").stat().st_mtime_ns == before
    (out / "report" / "table" / "3.js").unlink()
    write_report(out)
    assert (out / "report" / "table" / "3.js").is_file()


def test_rows_go_when_scans_are_few(out, tmp_path, monkeypatch):
    shutil.copytree(out, tmp_path / "out")
    monkeypatch.setattr("lesioncount.report.section_folder.PAGED_FROM", 1000)
    (tmp_path / "out" / "report.html").unlink()
    write_report(tmp_path / "out")
    assert not list((tmp_path / "out" / "report" / "table").iterdir())
    monkeypatch.setattr("lesioncount.report.page.FEW", 1000)
    (tmp_path / "out" / "report.html").unlink()
    write_report(tmp_path / "out")
    assert not (tmp_path / "out" / "report").exists()


def test_all_rows_are_found_and_some_are_shown(opened):
    page = opened()
    assert len(names(page)) == AT_ONCE
    assert page.inner_text("#found") == f"{N_SCANS + 1} of {N_SCANS + 1} scans, the first {AT_ONCE} are shown"
    page.keyboard.press("/")
    page.keyboard.type("SUB-12")
    assert names(page) == [name_of(scan) for scan in range(120, 130)]
    page.fill("#search", "")
    page.click("#more")
    assert len(names(page)) == N_SCANS + 1
    page.select_option("#filter", "failed")
    assert names(page) == ["broken"]


def test_sorting_looks_at_all_rows_and_failed_scans_come_last(opened):
    page = opened()
    page.click("#more")
    head = page.locator("#scans thead th", has_text="Mean").locator("button")
    for is_descending in (True, False):
        head.click()
        means = page.eval_on_selector_all(
            "#scans tbody tr[data-of]", "all => all.map(one => Number(one.dataset.of.split(' ')[3]))"
        )
        assert len(means) == N_SCANS
        assert means == sorted(means, reverse=is_descending)
        assert page.eval_on_selector("#scans tbody tr:last-child", "row => row.dataset.is") == "failed"
    page.click("#scans thead button:text-is('Scan')")
    assert names(page)[-1] == name_of(N_SCANS - 1)


def test_the_most_uncertain_scan_of_all_is_open_at_first(opened):
    page = opened()
    page.click("#more")
    spread = page.eval_on_selector_all(
        "#scans tbody tr[data-of]", "all => all.map(one => [Number(one.dataset.of.split(' ')[5]), one.dataset.name])"
    )
    assert page.inner_text("#opened h3") in {name for sd, name in spread if sd == max(spread)[0]}


def test_sections_are_opened_from_their_folders_by_name_address_and_step(opened):
    page = opened(f"#scan-{N_SCANS}")
    page.wait_for_selector(f"#opened #scan-{N_SCANS}")
    page.click("#scans thead button:text-is('Scan')")
    page.fill("#search", "sub-01")
    page.click("#scans a:text-is('sub-010')")
    page.wait_for_selector("#opened h3:text-is('sub-010')")
    page.click("#next")
    page.wait_for_selector("#opened h3:text-is('sub-011')")
    page.fill("#search", "a&b <i>")
    page.click("#scans tbody a")
    page.wait_for_selector("#opened h3:has-text('a&b')")


def test_a_part_that_is_gone_is_said(browser, out, tmp_path):
    shutil.copytree(out, tmp_path / "out")
    (tmp_path / "out" / "report" / "table" / "1.js").unlink()
    page = browser.new_page()
    page.goto((tmp_path / "out" / "report.html").as_uri())
    page.wait_for_selector("#opened details")
    assert page.inner_text("#found").startswith(f"Only {N_SCANS + 1 - 30} of {N_SCANS + 1} scans are listed")
    page.close()
