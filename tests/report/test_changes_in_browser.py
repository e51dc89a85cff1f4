"""The page of a comparison in a real browser, opened from disk as readers do."""

import pytest
from change_pairs import GONE, NEW, OLD, save_course

from lesioncount.runs import compare_batch

pytest.importorskip("matplotlib", reason="needs the extra [report]")
pytest.importorskip("jinja2", reason="needs the extra [report]")

from lesioncount.report import SectionWriter, write_report

N_PATIENTS = 55


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The address of a page of one file, and of one with a folder: patients with three sessions, and a broken map."""
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for kind, n_patients in (("few", 2), ("many", N_PATIENTS)):
        maps = folder / kind
        for patient in range(n_patients):
            peak = 0.99 - patient / 100
            save_course(maps, f"{patient:03}", {OLD: 0.9, GONE: peak}, {OLD: 0.9, NEW: peak}, {OLD: 0.9, NEW: peak})
        save_course(maps, "999", {}, {})
        (maps / "sub-999_ses-02_probseg.nii.gz").write_bytes(b"no map")
        found[kind] = write_report(compare_batch([maps], folder / f"{kind}-out", show=SectionWriter())).as_uri()
    return found


@pytest.fixture
def opened(open_page, pages):
    """Opens the page of few or of many."""

    def open_kind(kind, hash_="", **options):
        return open_page(pages[kind] + hash_, wait_for="#opened details" if kind == "many" else None, **options)

    return open_kind


def names(page):
    return page.eval_on_selector_all("#scans tbody tr:not([hidden]) .name", "all => all.map(one => one.textContent)")


def test_patient_with_the_most_changes_is_open_at_first(opened):
    page = opened("many")
    assert page.inner_text("#opened h3") == "sub-000"
    assert page.inner_text("#state") == f"sub-000, 1 of {N_PATIENTS} patients"
    assert page.locator("#opened .card").count() == 3 + 2  # of both pairs


def test_next_patient_skips_the_other_pairs_of_this_one(opened):
    page = opened("many")
    page.click("#next")
    page.wait_for_selector("#opened h3:text-is('sub-001')")
    page.click("#previous")
    page.wait_for_selector("#opened h3:text-is('sub-000')")


def test_second_pair_of_a_patient_opens_its_section(opened):
    page = opened("many")
    page.fill("#search", "sub-020")
    assert names(page) == ["sub-020__ses-01__ses-02", "sub-020__ses-02__ses-03"]
    page.click("#scans a:text-is('sub-020__ses-02__ses-03')")
    page.wait_for_selector("#opened h3:text-is('sub-020')")


def test_rows_beyond_a_few_screens_are_shown_when_asked_for(opened):
    page = opened("many")
    assert len(names(page)) == 100
    assert page.inner_text("#found") == f"{2 * N_PATIENTS + 1} of {2 * N_PATIENTS + 1} rows, the first 100 are shown"
    page.click("#more")
    assert len(names(page)) == 2 * N_PATIENTS + 1


def test_filter_keeps_pairs_with_a_new_lesion_or_those_that_failed(opened):
    page = opened("few")
    page.select_option("#filter", "new")
    assert names(page) == ["sub-000__ses-01__ses-02", "sub-001__ses-01__ses-02"]
    page.select_option("#filter", "failed")
    assert names(page) == ["sub-999"]


@pytest.mark.parametrize("kind", ["few", "many"])
def test_table_is_sorted_by_its_second_row_of_heads_and_failed_patients_come_last(opened, kind):
    page = opened(kind)
    if kind == "many":
        page.click("#more")
    head = page.locator("#scans thead tr:nth-child(2) th", has_text="mean").first
    head.locator("button").focus()
    for way in ("descending", "ascending"):
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == way
        means = page.eval_on_selector_all(
            "#scans tbody tr[data-name]", "all => all.map(one => Number(one.cells[1].dataset.v))"
        )
        assert means == sorted(means, reverse=way == "descending")
        assert page.eval_on_selector("#scans tbody tr:last-child", "row => row.dataset.is") == "failed"


def test_before_is_left_of_after_and_as_large(opened):
    page = opened("few")
    before, after = (page.locator(".times .plane svg").nth(place).bounding_box() for place in (0, 1))
    assert before["x"] + before["width"] <= after["x"]
    assert before["y"] == pytest.approx(after["y"], abs=0.5)
    assert before["width"] == pytest.approx(after["width"], abs=0.5)


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
    planes = page.eval_on_selector_all(
        ".times .plane", "all => all.slice(0, 6).map(one => one.getBoundingClientRect().width)"
    )
    assert max(planes) - min(planes) < 1  # all planes are as large as the first
