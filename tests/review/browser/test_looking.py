"""The picture and the list are one: what is chosen in either is shown in the other."""

import pytest

BRIGHT, DARK = 150, 110  # of lesions and of what surrounds them, in a window over the whole image


def test_each_plane_shows_the_candidate_where_it_is(reader):
    reader.open_scan("scan-b")
    reader.page.keyboard.press("o")
    reader.page.keyboard.press("x")
    reader.page.fill("#opacity", "0")
    reader.page.evaluate("window.lesioncountReview.picture.setWindow(0, 255)")
    for _ in range(3):
        at = reader.at()
        reader.until("!window.lesioncountReview.picture.drawing")
        away = [at[0] + 3, at[1] + 3, at[2] + 3]
        for plane in range(3):
            assert reader.brightness(at, plane) > BRIGHT
            assert reader.brightness(away, plane) < DARK
        reader.page.keyboard.press("j")


def test_a_click_in_the_list_shows_the_candidate_and_a_click_in_the_picture_chooses_it(reader):
    reader.open_scan("scan-b")
    rows = reader.page.locator("#list li")
    rows.nth(4).click()
    there, label = reader.at(), reader.current()
    rows.nth(1).click()
    assert (reader.at(), reader.current()) != (there, label)
    reader.page.keyboard.press("c")
    # Go to the slice of the other candidate, without choosing it, and click on it.
    reader.page.evaluate("at => window.lesioncountReview.picture.goTo(at)", there)
    reader.until("!window.lesioncountReview.picture.drawing")
    reader.page.mouse.click(*reader.pixel(there))
    assert reader.current() == label
    assert f"Candidate {label}" in reader.text("#about")


def test_the_wheel_and_keys_scroll_and_stop_at_the_ends(reader):
    reader.open_scan("scan-b")
    start = reader.at()
    reader.page.mouse.move(*reader.pixel(start))
    reader.page.mouse.wheel(0, -100)
    reader.until(f"window.lesioncountReview.picture.shown.at[2] === {start[2] + 1}")
    reader.page.keyboard.press("[")
    assert reader.at() == start
    for _ in range(30):
        reader.page.keyboard.press("[")
    assert reader.at() == [start[0], start[1], 0]
    reader.page.keyboard.press("c")
    assert reader.at() == start


def test_window_level_and_zoom_follow_mouse_keys_and_sliders(reader):
    reader.open_scan("scan-b")
    low, high = reader.page.evaluate("window.lesioncountReview.picture.window")
    x, y = reader.pixel(reader.at())
    reader.page.mouse.move(x, y)
    reader.page.mouse.down(button="right")
    reader.page.mouse.move(x - 60, y + 40, steps=4)
    reader.page.mouse.up(button="right")
    new_low, new_high = reader.page.evaluate("window.lesioncountReview.picture.window")
    assert new_high - new_low < high - low
    assert new_low + new_high > low + high
    zoom = float(reader.page.input_value("#zoom"))
    reader.page.keyboard.press("+")
    assert float(reader.page.input_value("#zoom")) > zoom
    assert reader.page.evaluate("window.lesioncountReview.picture.settings.zoom") == pytest.approx(1.25 * zoom)


def test_a_lesion_without_a_candidate_is_added_where_the_click_was(reader, server):
    reader.open_scan("scan-b")
    mean = float(reader.text("#mean"))
    at = reader.at()
    spot = [at[0] + 3, at[1] - 3, at[2]]
    reader.page.keyboard.down("Shift")
    reader.page.mouse.click(*reader.pixel(spot))
    reader.page.keyboard.up("Shift")
    reader.page.wait_for_selector("#list .added")
    assert server.journal(reader.name)[-1]["at"] == spot
    assert float(reader.text("#mean")) == pytest.approx(mean + 1, abs=0.05)
    reader.page.keyboard.press("a")  # by the mode, once
    assert reader.page.get_attribute("#add", "aria-pressed") == "true"
    reader.page.mouse.click(*reader.pixel([spot[0], spot[1] + 6, spot[2]], 0))
    reader.until("document.querySelectorAll('#list .added').length === 2")
    assert reader.page.get_attribute("#add", "aria-pressed") == "false"
    reader.page.keyboard.press("z")
    reader.until("document.querySelectorAll('#list .added').length === 1")


def test_the_list_sorts_and_filters(reader):
    reader.open_scan("scan-a")
    existence = "#list .existence"

    def shown():
        return [float(text.lstrip("<>")) for text in reader.page.locator(existence).all_text_contents()]

    reader.page.select_option("#sort", "surest")
    assert shown() == sorted(shown(), reverse=True)
    reader.page.select_option("#sort", "doubtful")
    assert shown() == sorted(shown())
    assert len(shown()) == 35
    reader.page.select_option("#filter", "sure")
    assert 0 < len(shown()) < 35
    assert min(shown()) >= 0.95
    reader.page.select_option("#filter", "open")
    reader.press("ln")
    reader.page.select_option("#filter", "decided")
    assert len(shown()) == 2
    assert "2 of 35" in reader.text("#shown")


def test_what_a_reader_likes_is_kept(reader):
    reader.open_scan("scan-b")
    reader.page.select_option("#sort", "size")
    reader.page.keyboard.press("p")
    reader.page.reload()
    reader.page.wait_for_selector("#list li")
    assert reader.page.input_value("#sort") == "size"
    assert reader.page.input_value("#opacity") == "0"
