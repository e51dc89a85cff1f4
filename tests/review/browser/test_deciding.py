"""Decisions by keyboard: shown, kept, taken back, and there after whatever happens."""

import pytest
from served_page import Server


def test_thirty_decisions_by_keyboard_are_there_after_a_reload(reader, server):
    reader.open_scan("scan-a")
    reader.press("lnulnulnul" * 3)
    said = reader.verdicts()
    assert sum(verdict != "open" for verdict in said.values()) == 30
    assert "30 of 35" in reader.text("#progress")
    assert len(server.journal(reader.name)) == 30
    reader.page.reload()
    reader.page.wait_for_selector("#list li")
    assert reader.verdicts() == said
    assert reader.text("#reader") == reader.name  # asked once


def test_each_decision_moves_the_count_and_undo_moves_it_back(reader):
    reader.open_scan("scan-b")
    before = float(reader.text("#mean"))
    label = reader.current()
    existence = float(reader.text(f"#row-{label} .existence"))
    reader.press("l")
    accepted = float(reader.text("#mean"))
    assert accepted - before == pytest.approx(1 - existence, abs=0.11)  # both are rounded to a digit
    assert reader.current() != label
    reader.page.keyboard.press("z")
    reader.until(f"document.querySelector('#row-{label}').dataset.verdict === 'open'")
    assert reader.current() == label
    assert float(reader.text("#mean")) == before
    reader.press("n")
    assert before - float(reader.text("#mean")) == pytest.approx(existence, abs=0.11)


def test_a_digit_says_how_many_lesions_a_candidate_is(reader, server):
    reader.open_scan("scan-c")
    before = float(reader.text("#mean"))
    label = reader.current()
    existence = float(reader.text(f"#row-{label} .existence"))
    reader.press("3")
    assert "3 lesions" in reader.text(f"#row-{label}")
    assert float(reader.text("#mean")) - before == pytest.approx(3 - existence, abs=0.11)
    assert (server.journal(reader.name)[-1]["verdict"], server.journal(reader.name)[-1]["n"]) == ("several", 3)
    reader.page.keyboard.press("m")
    reader.page.fill("#how-many", "12")
    label = reader.current()
    reader.page.keyboard.press("Enter")
    reader.until(f"document.querySelector('#row-{label}').textContent.includes('12 lesions')")


def test_when_all_is_decided_the_count_is_certain(reader):
    reader.open_scan("scan-c")
    reader.press("lnl")
    assert reader.text("#interval") == "2"
    assert "certain" in reader.text("#left").lower()


def test_a_decision_says_what_was_on_the_screen(reader, server):
    reader.open_scan("scan-b")
    peak = reader.at()
    reader.page.keyboard.press("o")
    reader.press("u")
    (entry,) = server.journal(reader.name)
    assert entry["shown"]["at"] == peak
    assert entry["shown"]["outlines"] is False
    assert entry["shown"]["existence"] is True
    assert entry["seconds"] > 0


def test_decisions_outlive_a_server_that_is_killed(cohort, another):
    out, images = cohort
    with Server(out, "--images", images) as server:
        first = another(server.address, "survivor")
        first.open_scan("scan-a")
        first.press("lnlun")
        said = first.verdicts()
        server.kill()
        first.page.keyboard.press("l")
        first.page.wait_for_selector("#alarm:not([hidden])")
        assert "does not answer" in first.text("#alarm")
        assert first.verdicts() == said  # what is not saved is not shown as if it were
    with Server(out, "--images", images) as server:
        again = another(server.address, "survivor")
        again.open_scan("scan-a")
        assert again.verdicts() == said
        assert len(server.journal("survivor")) == 5


def test_two_readers_at_once_do_not_see_each_other(reader, server, another):
    second = another(server.address, "somebody else")
    for each in (reader, second):
        each.open_scan("scan-b")
    reader.press("ll")
    second.press("n")
    reader.press("u")
    second.page.reload()
    second.page.wait_for_selector("#list li")
    assert sorted(v for v in second.verdicts().values() if v != "open") == ["none"]
    assert [entry["verdict"] for entry in server.journal(reader.name)] == ["lesion", "lesion", "unsure"]


def test_a_scan_that_is_done_leads_to_the_next_and_the_rest_can_be_no_lesions(reader, server):
    reader.open_scan("scan-a")
    reader.press("ll")
    reader.page.keyboard.press("d")
    reader.page.click("#rest-none")
    reader.until("!document.title.startsWith('scan-a')")
    assert server.journal(reader.name)[-1]["rest"] == "none"
    reader.page.keyboard.press("b")
    reader.page.wait_for_selector(".cohort")
    assert "1 of 3" in reader.text(".tiles")
    assert "done" in reader.text("tr:has-text('scan-a')")


def test_results_are_written_and_named(reader, cohort):
    reader.open_scan("scan-c")
    reader.press("lln")
    reader.page.keyboard.press("b")
    reader.page.click("#export")
    reader.page.wait_for_selector(".written li")
    assert "reviewed_counts.tsv" in reader.text(".written")
    assert reader.name in (cohort[0] / "reviewed_counts.tsv").read_text("utf-8")
