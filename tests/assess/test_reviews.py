"""Journals of readers, and what is made of them."""

import csv
import json

import nibabel as nib
import numpy as np
import pytest
from review_cohort import SimulatedReader, counted, write_map

from lesioncount.assess.beside_truth import TruthOptions, compare
from lesioncount.assess.reviews.export import apply_reviews, export_reviews
from lesioncount.assess.reviews.journals import (
    ReviewEvent,
    checked_reader,
    event_of,
    file_name,
    read_journal,
    readers_of,
)
from lesioncount.assess.reviews.progress import ScanProgress, left_in_cohort, order_of
from lesioncount.assess.reviews.reviews import Reviews, the_reader
from lesioncount.cli import main
from lesioncount.errors import ReviewError, TruthError
from lesioncount.protocol import CountingProtocol
from lesioncount.results.results import read_counted
from lesioncount.runs import Settings, count_batch
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.scores.agreement import agreement_of_answers, agreement_on_yes, kappa

_SCANS = {"a": [0.9, 0.6, 0.3], "b": [0.8, 0.5], "c": []}


@pytest.fixture
def results(tmp_path):
    return counted(tmp_path, _SCANS)


def _rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def _review(results, scan, reader="ann"):
    return Reviews(results, reader).scan(next(one for one in results.counted if one.name == scan))


def test_journal_says_who_decided_what_when_and_how_long_it_took(results):
    SimulatedReader(results, "Ann").decide("a", 2, "lesion", seconds=2.5)
    (line,) = (results.out / "reviews" / "Ann.jsonl").read_text().splitlines()
    content = json.loads(line)
    told = {name: content[name] for name in ("reader", "scan", "candidate", "verdict", "seconds")}
    assert told == {"reader": "Ann", "scan": "a", "candidate": 2, "verdict": "lesion", "seconds": 2.5}
    assert content["time"].endswith("+00:00")
    assert len(content["map_sha256"]) == 64


def test_accepted_is_one_rejected_none_and_several_as_many_as_said(results):
    ann = SimulatedReader(results)
    for label, verdict, n in ((1, "lesion", 1), (2, "none", 1), (3, "several", 4)):
        ann.decide("a", label, verdict, n)
    ann.add("a", (0, 0, 0))
    found = _review(results, "a")
    assert found.decided == (1, 0, 4)
    assert (found.n_lesions, found.count(None).mean(), found.count(None).var()) == (6, 6, 0)


def test_unsure_leaves_existence_as_it_was(results):
    SimulatedReader(results).decide("a", 2, "unsure")
    count = _review(results, "a").count(None)
    np.testing.assert_allclose(count.existence, [0.9, 0.6, 0.3], atol=1e-6)


def test_last_verdict_stands_and_undo_brings_back_the_one_before(results):
    ann = SimulatedReader(results)
    ann.decide("a", 1, "lesion")
    second = ann.decide("a", 1, "none")
    assert _review(results, "a").decided[0] == 0
    ann.undo("a", second)
    assert _review(results, "a").decided[0] == 1


def test_done_with_the_rest_rejected_is_a_complete_review_and_can_be_taken_back(results):
    ann = SimulatedReader(results)
    ann.decide("a", 1, "lesion")
    ann.done("a")
    assert not _review(results, "a").is_complete
    end = ann.done("a", rest="none")
    assert (_review(results, "a").is_complete, _review(results, "a").n_lesions) == (True, 1)
    ann.undo("a", end)
    assert not _review(results, "a").is_complete
    ann.done("a", done=False)
    assert not _review(results, "a").review.is_done


def test_decisions_about_another_map_of_that_name_do_not_count(results, tmp_path):
    SimulatedReader(results).decide("a", 1, "none")
    write_map(tmp_path / "maps" / "a.nii.gz", [0.9, 0.61, 0.3])
    count_batch([tmp_path / "maps"], results.out, overwrite=True)
    assert list(Reviews(read_counted(results.out), "ann").begun()) == []


def test_decisions_about_regions_do_not_count_for_peaks(results, tmp_path):
    ann = SimulatedReader(results)
    ann.decide("a", 1, "several", 3)
    ann.done("a", rest="none")
    count_batch([tmp_path / "maps"], tmp_path / "peaks", settings=Settings(protocol=CountingProtocol.named("peaks")))
    with pytest.raises(ReviewError, match="has reviewed none of these scans"):
        apply_reviews(read_counted(tmp_path / "peaks"), results.out)


def test_decisions_hold_under_another_threshold(results, tmp_path):
    SimulatedReader(results).decide("a", 1, "none")
    strict = CountingProtocol(threshold=0.4)
    count_batch([tmp_path / "maps"], tmp_path / "strict", settings=Settings(protocol=strict))
    applied = apply_reviews(read_counted(tmp_path / "strict"), results.out)
    assert applied.mean == pytest.approx(0.6 + 0.8 + 0.5, abs=1e-5)


def test_other_commands_leave_the_journal_alone(results, tmp_path):
    SimulatedReader(results).decide("a", 1, "lesion")
    before = (results.out / "reviews" / "ann.jsonl").read_bytes()
    export_reviews(results)
    for options in ("--overwrite", "--resume"):
        assert main(["count", str(tmp_path / "maps"), "-o", str(results.out), options, "--quiet"]) == 0
    assert (results.out / "reviews" / "ann.jsonl").read_bytes() == before
    assert _review(read_counted(results.out), "a").decided[0] == 1


def test_label_maps_of_reviews_are_not_taken_for_maps_to_count(results, tmp_path):
    SimulatedReader(results).decide("a", 1, "lesion")
    export_reviews(results)
    with pytest.raises(OSError, match="no maps in the folder"):
        count_batch([results.out], tmp_path / "again")


def test_torn_lines_and_lines_of_others_are_skipped_and_said(results, capsys):
    ann = SimulatedReader(results)
    ann.decide("a", 1, "lesion")
    path = results.out / "reviews" / "ann.jsonl"
    with path.open("ab") as file:
        file.write(b'{"reader": "ann", "scan": "a", "action": "dec')
    ann.decide("a", 2, "none")
    with path.open("ab") as file:
        file.write(b"[1, 2]\nnot json\n\n" + b"[" * 100_000 + b"\n")
        file.write(ReviewEvent(reader="bob", scan="a", action="add", at=(1, 1, 1)).to_line() + b"\n")
    journal = read_journal(results.out, "ann")
    assert [event.verdict for event in journal.events("a")] == ["lesion", "none"]
    assert journal.n_skipped == 5
    assert main(["review", str(results.out), "--export", "--no-label-maps"]) == 0
    assert "In the journal of ann, 5 lines cannot be read and are skipped" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "review {out} --export",
        "evaluate {out} --reviews -o {new}",
        "calibrate {out} --reviews -o {new}",
        "count {out} --reviews {out} -o {new}",
        "count {out} --reviews {out} --reader ann -o {new}",
    ],
)
@pytest.mark.parametrize("reader", ["\\ud800", "", "a\\nb"])
def test_a_journal_of_nobody_is_named_with_its_line(results, tmp_path, capsys, command, reader):
    SimulatedReader(results).decide("a", 1, "lesion")
    line = (results.out / "reviews" / "ann.jsonl").read_text().replace('"reader": "ann"', f'"reader": "{reader}"')
    assert '"ann"' not in line
    (results.out / "reviews" / "bob.jsonl").write_text(f"not an event\n{line}")
    assert main(command.format(out=results.out, new=tmp_path / "new").split()) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{results.out / 'reviews' / 'bob.jsonl'}, line 2: expected the name of a reader" in said


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", ".hidden", "Ünal Ö", "-rf", "a b", "日本", "CON\u202e"])
def test_any_name_of_a_reader_is_a_harmless_file(name, results):
    try:
        reader = checked_reader(name)
    except ReviewError:
        assert not name.isprintable()
        return
    file = file_name(reader)
    assert "/" not in file
    assert file[0] not in ".-"
    assert file.isascii()
    SimulatedReader(results, name).decide("a", 1, "lesion")
    assert [path.name for path in (results.out / "reviews").iterdir()] == [file]
    assert readers_of(results.out) == (reader,)


def test_two_readers_whose_names_are_spelt_alike_have_two_files():
    assert len({file_name("Ann B"), file_name("Ann_B"), file_name("Ann/B")}) == 3


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "two\nlines"])
def test_reader_without_a_proper_name_is_refused(name):
    with pytest.raises(ReviewError, match="name of a reader"):
        checked_reader(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "decide", "verdict": "lesion"},
        {"action": "decide", "peak": (1, 2, 3)},
        {"action": "decide", "peak": (1, 2, 3), "verdict": "several", "n": 1},
        {"action": "add"},
        {"action": "undo"},
        {"action": "add", "at": (1, 1), "seconds": -1.0},
        {"action": "add", "at": (1, 1), "seconds": float("nan")},
        {"action": "add", "at": (1, 1), "shown": {"a": "x" * 5000}},
    ],
)
def test_events_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ReviewError):
        ReviewEvent(reader="ann", scan="a", **wrong)


def test_event_comes_back_from_its_line():
    event = ReviewEvent(reader="Änn", scan="ü", action="add", at=(1, 2), shown={"zoom": 1.5})
    assert event_of(event.to_line()) == event


def test_export_has_each_scan_each_decision_and_what_was_accepted(results):
    ann = SimulatedReader(results)
    ann.decide("a", 1, "lesion", seconds=2)
    ann.decide("a", 3, "none", seconds=3)
    ann.add("a", (20, 18, 9))
    ann.done("a", rest="none")
    files, notes = export_reviews(results)
    assert files == ["reviewed_counts.tsv", "reviewed_lesions.tsv", "reviews/ann/a_accepted.nii.gz"]
    assert notes == []
    first, *others = _rows(results.out / "reviewed_counts.tsv")
    assert (first["scan"], first["complete"], first["count_mean"], first["count_sd"]) == ("a", "yes", "2", "0")
    assert (first["n_accepted"], first["n_rejected"], first["n_added"], first["seconds"]) == ("1", "2", "1", "5")
    assert [row["n_decided"] for row in others] == ["0", "0"]
    assert float(others[0]["count_mean"]) == pytest.approx(1.3, abs=1e-4)
    verdicts = [row["verdict"] for row in _rows(results.out / "reviewed_lesions.tsv")]
    assert verdicts == ["lesion", "none", "none", "added"]
    labels = np.asarray(nib.load(results.out / files[-1]).dataobj)
    assert np.unique(labels).tolist() == [0, 1, 4]
    assert labels[20, 18, 9] == 4
    assert (labels == 1).sum() == 2


def test_export_says_which_map_is_gone(results, tmp_path):
    SimulatedReader(results).decide("a", 1, "lesion")
    (tmp_path / "maps" / "a.nii.gz").unlink()
    files, notes = export_reviews(results)
    assert files == ["reviewed_counts.tsv", "reviewed_lesions.tsv"]
    assert "no longer there" in notes[0]
    assert main(["review", str(results.out), "--export"]) == 1
    assert main(["review", str(results.out), "--export", "--no-label-maps"]) == 0


def test_export_without_reviews_says_how_to_begin(results, capsys):
    assert main(["review", str(results.out), "--export"]) == 2
    assert "Review first: lesioncount review" in capsys.readouterr().err


def test_agreement_of_two_readers_is_written_with_intervals(results):
    ann, bob = SimulatedReader(results, "ann"), SimulatedReader(results, "bob")
    for reader, verdicts in ((ann, ("lesion", "lesion", "none")), (bob, ("lesion", "none", "none"))):
        for label, verdict in enumerate(verdicts, start=1):
            reader.decide("a", label, verdict)
        reader.decide("b", 1, "lesion")
        reader.done("a")
    bob.decide("b", 2, "unsure")
    export_reviews(results, label_maps=False)
    (row,) = _rows(results.out / "reader_agreement.tsv")
    assert (row["reader_1"], row["reader_2"], row["n_scans"], row["n_candidates"]) == ("ann", "bob", "2", "4")
    assert float(row["same"]) == 0.75
    assert float(row["kappa"]) == pytest.approx(0.5)
    assert float(row["on_yes"]) == pytest.approx(0.8)
    assert float(row["same_low"]) < 0.75 < float(row["same_high"])
    assert (row["n_complete"], float(row["count_difference"])) == ("1", -1)


def test_kappa_is_that_of_scikit_learn(rng):
    from sklearn.metrics import cohen_kappa_score, f1_score

    one, other = rng.random(200) < 0.4, rng.random(200) < 0.6
    table = [[np.sum((one == i) & (other == j)) for j in (False, True)] for i in (False, True)]
    assert kappa(table) == pytest.approx(cohen_kappa_score(one, other))
    assert agreement_on_yes(table) == pytest.approx(f1_score(one, other))


def test_interval_of_kappa_holds_the_truth_most_of_the_time(rng):
    held = 0
    for _ in range(60):
        says = rng.random((40, 5)) < 0.5
        other = np.where(rng.random((40, 5)) < 0.2, ~says, says)  # one in five turned: kappa 0.6
        tables = np.array(
            [[np.sum((a == i) & (b == j)) for j in (0, 1)] for a, b in zip(says, other, strict=True) for i in (0, 1)]
        )
        _, found, _ = agreement_of_answers(tables.reshape(40, 2, 2), list(range(40)))
        held += found.low <= 0.6 <= found.high
    assert held >= 51


def test_readers_who_always_deny_have_no_kappa():
    assert np.isnan(kappa([[5, 0], [0, 0]]))


def test_complete_reviews_are_the_truth_and_others_are_left_out(results):
    ann = SimulatedReader(results)
    ann.decide("a", 1, "several", 3)
    ann.decide("a", 2, "lesion")
    ann.add("a", (20, 18, 9))
    ann.done("a", rest="none")
    ann.decide("b", 1, "lesion")
    compared = compare(results.of(), TruthOptions(reviews=results.out), read_maps=True)
    assert [scan.name for scan in compared.scans] == ["a"]
    (truth,) = compared.truths
    assert truth.count == 5
    match = truth.matches[""]
    assert match.owns.tolist() == [True, True, False]
    assert (match.n_missed, match.n_merged, match.n_found_by(match.owns)) == (1, 1, 4)
    assert "1 of the 2 scans that ann has begun" in compared.notes[0]


def test_reviews_without_a_complete_one_are_no_truth(results):
    SimulatedReader(results).decide("a", 1, "lesion")
    with pytest.raises(ReviewError, match="No review by ann is complete, of 1 begun"):
        compare(results.of(), TruthOptions(reviews=results.out), read_maps=False)


def test_of_an_ensemble_the_first_member_is_reviewed(tmp_path):
    for member, peaks in (("one", [0.9, 0.6]), ("two", [0.8])):
        write_map(tmp_path / member / "a.nii.gz", peaks)
    count_batch([tmp_path / "one", tmp_path / "two"], tmp_path / "out", members=True)
    results = read_counted(tmp_path / "out")
    ann = SimulatedReader(results)
    ann.decide("a", 2, "none")
    assert _review(results, "a").count(None).mean() == pytest.approx(0.9, abs=1e-6)
    ann.done("a", rest="none")
    (truth,) = compare(results.of(), TruthOptions(reviews=results.out), read_maps=True).truths
    assert (truth.count, truth.matches) == (0, {})
    assert export_reviews(results)[1] == []


def test_reviews_are_evaluated_from_the_command_line(results, tmp_path):
    ann = SimulatedReader(results)
    for scan in ("a", "b", "c"):
        if scan != "c":
            ann.decide(scan, 1, "lesion")
        ann.done(scan, rest="none")
    assert main(["evaluate", str(results.out), "--reviews", "-o", str(tmp_path / "evaluation")]) == 0
    content = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())
    assert content["truth"]["kind"] == "reviews"
    assert content["n_scans"] == 3


@pytest.mark.parametrize("fit_from", ["counts", "lesions"])
def test_twenty_reviewed_scans_calibrate(tmp_path, fit_from, rng):
    scans = {f"s{number:02}": np.sort(rng.uniform(0.15, 0.98, 4)).tolist() for number in range(24)}
    results = counted(tmp_path, scans)
    ann = SimulatedReader(results)
    for scan in list(scans)[:20]:
        for label, existence in enumerate(results.record(scan).summary.tables[0].peak, start=1):
            ann.decide(scan, label, "lesion" if rng.random() < existence else "none")
        ann.done(scan)
    file = tmp_path / "calibration.json"
    assert main(["calibrate", str(results.out), "--reviews", "--fit-from", fit_from, "-o", str(file)]) == 0
    again = ["count", str(tmp_path / "maps"), "-o", str(tmp_path / "new"), "--calibration", str(file)]
    assert main([*again, "--reviews", str(results.out), "--quiet"]) == 0
    rows = _rows(tmp_path / "new" / "reviewed_counts.tsv")
    assert [row["complete"] for row in rows] == ["yes"] * 20 + ["no"] * 4
    assert all(float(row["count_sd"]) == 0 for row in rows[:20])


def test_partial_reviews_fix_candidates_in_a_new_count(results, tmp_path):
    SimulatedReader(results).decide("a", 2, "none")
    count_batch([tmp_path / "maps"], tmp_path / "new")
    applied = apply_reviews(read_counted(tmp_path / "new"), results.out)
    assert (applied.n_begun, applied.n_complete) == (1, 0)
    assert applied.mean == pytest.approx(0.9 + 0.3 + 0.8 + 0.5, abs=1e-5)
    assert applied.sd**2 == pytest.approx(0.09 + 0.21 + 0.16 + 0.25, abs=1e-5)
    assert "Reviewed by ann: 1 scan, 0 completely" in str(applied)


def test_reviews_of_other_maps_are_refused(results, tmp_path):
    SimulatedReader(results).decide("a", 2, "none")
    other = counted(tmp_path / "other", {"z": [0.5]})
    with pytest.raises(ReviewError, match="has reviewed none of these scans"):
        apply_reviews(other, results.out)


def test_reader_must_be_named_where_there_are_several(results):
    with pytest.raises(ReviewError, match="There are no reviews"):
        the_reader(results.out, None)
    for name in ("ann", "bob"):
        SimulatedReader(results, name).decide("a", 1, "lesion")
    with pytest.raises(ReviewError, match=r"reviews of ann, bob\. Whose are meant"):
        the_reader(results.out, None)
    with pytest.raises(ReviewError, match="no review by eve"):
        the_reader(results.out, "eve")
    assert the_reader(results.out, "bob") == "bob"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"table": "t.tsv"}, "by themselves"), ({"reviews": None, "masks": ".", "reader": "ann"}, "goes with reviews")],
)
def test_reviews_beside_other_truth_are_refused(options, message, tmp_path):
    given = {"reviews": tmp_path} | {k: tmp_path if k == "masks" else v for k, v in options.items()}
    with pytest.raises(TruthError, match=message):
        TruthOptions(**given)


def test_scans_are_ordered_by_what_their_review_takes_from_the_variance():
    rows = [(0.2, False), (1.5, False), (9.0, True), (0.7, False)]
    progress = [ScanProgress(4, 0, is_done, 2.0, variance, 0.0) for variance, is_done in rows]
    assert order_of(progress) == [1, 3, 0, 2]
    assert order_of(progress, "run") == [0, 1, 3, 2]
    shuffled = {tuple(order_of(progress, "random", seed=seed)) for seed in range(20)}
    assert len(shuffled) == 6
    assert all(one[-1] == 2 for one in shuffled)


def test_what_is_left_is_said_in_lesions():
    progress = [ScanProgress(3, 1, False, 10.0, 2.0, 0.0), ScanProgress(3, 3, True, 4.0, 2.0, 0.0)]
    assert left_in_cohort(progress) == (
        2.0,
        "1 of 2 scans done. If you stop here: what is left would change the total of 14 by ± 3.3 (90 %).",
    )
    sure = [ScanProgress(3, 3, True, 10.0, 0.0, 0.0)]
    assert "Nothing is left that would change the total of 10" in left_in_cohort(sure)[1]


def test_calibration_that_shares_a_shift_learns_from_decisions_in_the_record(results):
    SimulatedReader(results).decide("a", 1, "none")
    shared = Calibration(spread=2.0)
    after = _review(results, "a").count(shared).existence[1:]
    assert (after < shared.existence(results.record("a").summary.tables[0])[1:]).all()
