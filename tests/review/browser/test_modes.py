"""Blinded readers, pictures of two dimensions, installations without the viewer, and readers who cannot see."""

import json

import nibabel
import numpy as np
import pytest
from served_page import Server


def test_a_blinded_reader_sees_neither_probabilities_nor_outlines(cohort, another):
    out, images = cohort
    with Server(out, "--images", images, "--blinded") as server:
        reader = another(server.address, "blind")
        asked = []
        reader.page.on("request", lambda request: asked.append(request.url))
        reader.open_scan("scan-b")
        for absent in (".existence", "#outlines", "#opacity", "#mean", ".chart"):
            assert reader.page.locator(absent).count() == 0
        reader.press("lln")
        assert reader.text("#accepted") == "2"
        assert not [url for url in asked if "map." in url or "labels." in url]
        scan = reader.page.evaluate("fetch('/api/scan/1').then(answer => answer.json())")
        assert {one["existence"] for one in scan["candidates"]} == {None}
        assert not server.journal("blind")[0]["shown"]["existence"]


def test_a_picture_of_two_dimensions_is_one_plane(tmp_path, another):
    from lesioncount.cli import main

    probabilities = np.zeros((60, 80), np.float32)
    probabilities[10:14, 20:23] = 0.7
    probabilities[40:44, 60:66] = 0.4
    (tmp_path / "maps").mkdir()
    np.save(tmp_path / "maps/leaf.npy", probabilities)
    assert main(["count", str(tmp_path / "maps"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    with Server(tmp_path / "out") as server:
        reader = another(server.address, "botanist")
        reader.open_scan("leaf")
        assert reader.page.evaluate("window.lesioncountReview.picture.planes.length") == 1
        at = reader.at()
        (x, y), (right, _), (_, below) = (reader.pixel(spot) for spot in ([20, 30, 0], [20, 35, 0], [25, 30, 0]))
        assert right > x  # as in the picture: columns to the right, rows down
        assert below > y
        reader.page.keyboard.press("o")
        reader.page.keyboard.press("x")
        reader.until("!window.lesioncountReview.picture.drawing")
        assert reader.brightness([12, 21, 0]) > 150 > reader.brightness([20, 30, 0])
        reader.page.keyboard.down("Shift")
        reader.page.mouse.click(*reader.pixel([25, 40, 0]))
        reader.page.keyboard.up("Shift")
        reader.page.wait_for_selector("#list .added")
        assert server.journal("botanist")[-1]["at"] == [25, 40]
        assert probabilities[at[0], at[1]] > 0.1


def test_without_the_viewer_the_page_says_so_and_the_list_still_works(server, another):
    reader = another(server.address, "without pictures")

    def without(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=json.dumps({**answer.json(), "has_viewer": False}))

    reader.page.route("**/api/session", without)
    reader.page.goto(server.address.partition("?")[0] + "#/scan/2")
    reader.page.reload()
    reader.page.wait_for_selector(".planes .wait")
    assert "make page" in reader.text(".planes .wait")
    reader.press("l")
    assert sum(verdict == "lesion" for verdict in reader.verdicts().values()) == 1


def test_detections_without_images_are_a_list_with_places(tmp_path, another):
    from lesioncount.cli import main

    (tmp_path / "d.csv").write_text("scan,x_mm,y_mm,z_mm,score\na,6,7,-8,0.9\na,20,6,6,0.5\n")
    assert main(["count", str(tmp_path / "d.csv"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    with Server(tmp_path / "out") as server:
        reader = another(server.address, "list")
        reader.page.goto(server.address.partition("?")[0] + "#/scan/0")
        reader.page.wait_for_selector(".planes .wait")
        assert "without images" in reader.text(".planes .wait")
        assert reader.page.locator("#level, #outlines").count() == 0
        reader.page.click("#row-1")
        assert "at 6.0, 7.0, -8.0 RAS mm" in reader.text("#about")
        reader.press("l")
        reader.page.click("#add")
        reader.page.wait_for_selector("#list .added")
        assert [event["action"] for event in server.journal("list")] == ["decide", "add"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding_of_axe(server, another, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    reader = another(server.address, None, color_scheme=scheme, bypass_csp=True)

    def check(where):
        found = axe.run(reader.page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], where

    reader.page.wait_for_selector("#reader-name")
    check("the question for a name")
    reader.page.fill("#reader-name", f"axe {scheme}")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_selector(".cohort")
    check("all scans")
    reader.open_scan("scan-b")
    reader.press("lnu")
    check("one scan")
    reader.page.keyboard.press("?")
    reader.page.wait_for_selector("#help")
    check("the keys")


def test_a_tablet_shows_everything_without_scrolling_sideways(server, another):
    reader = another(server.address, "tablet")
    reader.page.set_viewport_size({"width": 820, "height": 1180})
    reader.open_scan("scan-a")
    assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = reader.page.locator(".planes").bounding_box()
    assert box["width"] > 800
    assert box["height"] > 500


@pytest.mark.slow
def test_a_real_scan_is_seen_and_counted_at_once(shared_data, tmp_path, another):
    from lesioncount.cli import main

    data = shared_data / "open_ms"
    (tmp_path / "maps").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "maps/patient07.nii.gz").symlink_to(data / "nic_probs/patient07_nic_stage1_tta2_prob.nii.gz")
    (tmp_path / "images/patient07.nii.gz").symlink_to(data / "patients_mni/patient07_FLAIR_u8.nii.gz")
    command = ["count", tmp_path / "maps", "-o", tmp_path / "out", "--quiet"]
    assert main(list(map(str, command))) == 0
    with Server(tmp_path / "out", "--images", tmp_path / "images") as server:
        reader = another(server.address, "radiologist")
        reader.open_scan("patient07")
        assert nibabel.load(data / "patients_mni/patient07_FLAIR_u8.nii.gz").shape == (182, 218, 182)
        first = []
        for _ in range(5):
            reader.page.reload()
            reader.until("window.lesioncountReview?.wholePicture")
            first.append(reader.page.evaluate("window.lesioncountReview.firstPicture"))
        for key in "lnu" * 10:
            reader.press(key)
            reader.page.wait_for_timeout(300)  # nobody decides faster
        redraws = reader.page.evaluate("window.lesioncountReview.redraws")
    assert min(first) <= 1500
    assert np.median(redraws) <= 50
