"""The report in a real browser, opened from disk as readers do."""

import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import nibabel as nib
import numpy as np
import pytest

from lesioncount.runs.count import count_batch

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from lesioncount.cohort.names import shown_name
from lesioncount.report import SectionWriter, write_report

PEAKS = [0.95, 0.5, 0.85, 0.4, 0.3, 0.6]
N_SCANS = 130
NAME = "a-very-long-name-of-a-scan-that-somebody-has-called-after-everything-they-knew_50%25%23"
SHOWN = shown_name(NAME)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The address of a page of one file, and of one with a folder: scans with up to six candidates, one named oddly."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for kind, n_scans in (("few", 3), ("many", N_SCANS)):
        maps = folder / kind
        maps.mkdir()
        for scan in range(n_scans):
            probabilities = np.zeros((20, 100, 90), np.float32)
            for place, peak in enumerate(PEAKS[: 1 + scan % 6]):
                probabilities[3 * place : 3 * place + 2, 15 * place + 5 : 15 * place + 8, 20:24] = peak - scan / 1000
            name = unquote(NAME) if scan == 1 else f"sub-{scan:03}"
            nib.Nifti1Image(probabilities, np.diag([3.0, 1, 1, 1])).to_filename(maps / f"{name}.nii.gz")
        (maps / "broken.nii.gz").write_bytes(b"no map")
        results = count_batch([maps], folder / f"{kind}-out", show=SectionWriter())
        found[kind] = write_report(results).as_uri()
    return found


@pytest.fixture
def opened(open_page, pages):
    """Opens the page of few or of many."""

    def open_kind(kind, hash_="", **options):
        return open_page(pages[kind] + hash_, wait_for="#opened details" if kind == "many" else None, **options)

    return open_kind


def names(page):
    return page.eval_on_selector_all("#scans tbody tr:not([hidden]) .name", "all => all.map(one => one.textContent)")


def cards(page, inside):
    return page.eval_on_selector_all(f"{inside} .card", "all => all.map(one => one.dataset.existence)")


def test_most_uncertain_scan_is_open_at_first(opened):
    page = opened("many")
    spread = page.eval_on_selector_all(
        "#scans tbody tr[data-of]", "all => all.map(one => [Number(one.dataset.of.split(' ')[5]), one.dataset.name])"
    )
    assert page.inner_text("#opened h3") in {name for sd, name in spread if sd == max(spread)[0]}
    assert page.locator("#opened .card").count() == 6


def test_scan_is_opened_by_its_name_however_that_is_written(opened):
    page = opened("many")
    page.click(f"#scans a:text-is('{SHOWN}')")
    page.wait_for_selector(f"#opened h3:text-is('{SHOWN}')")
    assert page.evaluate("document.activeElement.localName") == "summary"
    assert page.locator("#opened .card").count() == 2


def test_address_of_a_scan_opens_it(opened):
    page = opened("many", "#scan-9")
    page.wait_for_selector("#opened #scan-9")
    assert page.inner_text("#opened h3") == page.inner_text("#scans a[href='#scan-9']")


def test_next_scan_follows_the_order_of_the_table(opened):
    page = opened("many")
    page.click("#scans thead button:text-is('Scan')")
    page.click("#scans a:text-is('sub-010')")
    page.wait_for_selector("#opened h3:text-is('sub-010')")
    page.click("#next")
    page.wait_for_selector("#opened h3:text-is('sub-011')")
    page.click("#previous")
    page.wait_for_selector("#opened h3:text-is('sub-010')")


def test_search_looks_at_all_scans_also_those_that_are_not_shown(opened):
    page = opened("many")
    assert len(names(page)) == 100
    page.keyboard.press("/")
    page.keyboard.type("SUB-12")
    assert names(page) == [f"sub-{scan}" for scan in range(120, 130)]
    assert page.inner_text("#found") == f"10 of {N_SCANS + 1} scans"
    page.fill("#search", "")
    page.click("#more")
    assert len(names(page)) == N_SCANS + 1


def test_filter_keeps_those_that_failed(opened):
    page = opened("many")
    page.select_option("#filter", "failed")
    assert names(page) == ["broken"]


@pytest.mark.parametrize("kind", ["few", "many"])
def test_table_is_sorted_by_keyboard_both_ways_and_failed_scans_come_last(opened, kind):
    page = opened(kind)
    head = page.locator("#scans thead th", has_text="Mean")
    head.locator("button").focus()
    for way in ("descending", "ascending"):
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == way
        means = page.eval_on_selector_all(
            "#scans tbody tr[data-of]", "all => all.map(one => Number(one.dataset.of.split(' ')[3]))"
        )
        assert means == sorted(means, reverse=way == "descending")
        assert page.eval_on_selector("#scans tbody tr:last-child", "row => row.dataset.is") == "failed"


@pytest.mark.parametrize(("kind", "inside"), [("few", "#scan-4"), ("many", "#opened")])
def test_sure_or_doubtful_candidates_come_first_as_chosen(opened, kind, inside):
    page = opened(kind)
    doubtful = cards(page, inside)
    page.select_option("#order", "existence")
    sure = cards(page, inside)
    assert sure == sorted(doubtful, key=float, reverse=True) != doubtful
    page.select_option("#order", "share")
    assert cards(page, inside) == doubtful


def test_pictures_are_whole_slices_until_close_ups_are_chosen(opened):
    page = opened("many")
    picture = page.locator("#opened .plane svg").first
    whole = picture.get_attribute("viewBox")
    assert whole == "0 0 60 100"
    page.select_option("#zoom", "near")
    assert picture.get_attribute("viewBox") == picture.get_attribute("data-near") != whole
    page.click("#next")
    page.wait_for_selector("#state:has-text(', 2 of 130 scans')")
    assert "near" in page.locator("#opened .plane svg").first.get_attribute("class")


def test_overview_zooms_and_opens_a_scan_by_keyboard(opened):
    page = opened("many")
    page.focus("#overview")
    page.keyboard.press("ArrowRight")
    for _ in range(3):
        page.keyboard.press("+")
    assert "scans 1 to 29 of 130" in page.inner_text("#overview")  # 0.6³ of them
    page.keyboard.press("ArrowRight")
    name = page.inner_text("#pointed").partition(":")[0]
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#opened h3:text-is('{name}')")
    page.focus("#overview")
    page.keyboard.press("0")
    assert "scans 1 to 130 of 130" in page.inner_text("#overview")


def test_overview_shows_what_is_searched_for(opened):
    page = opened("many")
    page.fill("#search", "sub-00")
    assert "of 9" in page.inner_text("#overview")


def test_section_that_is_gone_is_said_to_be(browser, pages, tmp_path):
    alone = tmp_path / "report.html"
    shutil.copy(Path(unquote(urlparse(pages["many"]).path)), alone)
    page = browser.new_page()
    page.goto(alone.as_uri())
    page.wait_for_selector("#state:has-text('Keep the folder “report” beside report.html')")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["few", "many"])
def test_page_has_no_serious_barrier(opened, kind, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(kind, color_scheme=scheme)
    found = axe.run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("kind", ["few", "many"])
def test_page_fits_on_a_phone(opened, kind):
    page = opened(kind, viewport={"width": 420, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_all_rows_and_the_open_scan_are_printed(opened):
    page = opened("many")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(names(page)) == N_SCANS + 1
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(names(page)) == 100


def test_large_page_opens_at_once(opened, pages):
    page = opened("many")
    page.goto(pages["many"])
    timing = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert timing < 5000  # a second on a machine that does nothing else
