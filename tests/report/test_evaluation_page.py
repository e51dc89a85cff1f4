"""The page of an evaluation as a reader finds it, made from simulated scans with a known truth."""

import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from html_page import Page

from lesioncount import CountingProtocol, PoissonBinomial, scores
from lesioncount.assess.evaluation import Evaluation, read_evaluation
from lesioncount.errors import MapFileError
from lesioncount.trust.scores.lesions import OWNERSHIP_RULE

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from lesioncount.report.evaluation import _rendered as rendered
from lesioncount.report.evaluation import write_evaluation_page
from lesioncount.report.evaluation_scores import SCORES

N, LAST = 60, 4
FIGURES = {"agreement", "bland-altman", "pit", "coverage", "reliability", "existence", "certainty", "threshold"}
CONFUSIONS = {"confusion-raw", "confusion-calibrated", "confusion-cc"}
NAMES = {
    "raw": "lesioncount", "calibrated": "lesioncount, calibrated", "cc": "components above 0.5",
    "cc_tuned": "components above 0.7", "all_zero": "all-zero",
}  # fmt: skip


def around(value, half=0.05):
    return {"estimate": value, "low": value - half, "high": value + half}


def third(low, high):
    return {
        "low": float(low), "high": float(high), "n": 20, "error": around(0.7), "bias": around(-0.3),
        "coverage": around(0.85), "width": around(2.5),
    }  # fmt: skip


def with_bins(content):
    """As ``--bins 0,1,2,3,4+`` makes it."""
    matrix = np.diag([12] * (LAST + 1)).tolist()
    methods = {
        key: of | {"confusion": matrix, "scores": of["scores"] | {"f1": around(0.5)}}
        for key, of in content["methods"].items()
    }
    return content | {"bins": LAST, "methods": methods}


def binned(reliability):
    as_json = [
        [None if np.isnan(x) else x for x in column] for column in (reliability.confidence, reliability.hit_rate)
    ]
    return {"n": reliability.n.tolist(), "confidence": as_json[0], "hit_rate": as_json[1]}


def scored(key, p, truth):
    guess, reliability = p.argmax(axis=1), scores.count_reliability(p, truth)
    confusion = scores.confusion(guess, truth, max_count=LAST)
    values = {
        "rps": scores.rps(p, truth).mean(), "mae": np.abs(guess - truth).mean(), "bias": 0.01, "relative_bias": 0.02,
        "accuracy": confusion.accuracy, "within_1": 0.9, "within_10_percent": 0.7, "concordance": 0.8,
        "coverage50": 0.61, "width50": 0.6, "coverage80": 0.84, "width80": 1.1, "coverage90": 0.91, "width90": 1.4,
        "nll": scores.nll(p, truth).mean(), "nll_floored": 0.0, "zero_mass": 0.0,
        "ece": reliability.ece, "mce": reliability.mce,
    }  # fmt: skip
    is_point = key not in ("raw", "calibrated")
    share = np.linspace(0.05, 1, 20)
    return {
        "name": NAMES[key], "about": f"about {key}",
        "scores": {name: around(float(value)) for name, value in values.items()}
        | {"auroc": None if is_point else around(0.7)},
        "pit": None if is_point else {"n": [6] * 10, "low": 2, "high": 11},
        "coverage": None if is_point else {name: [0.5, 0.9] for name in ("nominal", "actual", "low", "high")},
        "confusion": None, "reliability": binned(reliability),
        "certainty": None if is_point else {"share": share.tolist(), "accuracy": (1 - share / 2).tolist()},
    }  # fmt: skip


@pytest.fixture(scope="module")
def simulated():
    """An evaluation of scans whose candidates exist as probably as the calibrated method says."""
    rng = np.random.default_rng(5)
    honest = [rng.random(rng.integers(1, 6)) for _ in range(N)]
    sure = [1 / (1 + ((1 - p) / p) ** 2) for p in honest]
    truth = np.array([(rng.random(p.size) < p).sum() for p in honest]).clip(max=LAST)

    def rows(scans):
        full = np.array([np.pad(PoissonBinomial(p).pmf(np.arange(p.size + 1)), (0, 5 - p.size)) for p in scans])
        return np.column_stack([full[:, :LAST], full[:, LAST:].sum(axis=1)])

    def points(threshold):
        return np.eye(LAST + 1)[[min(LAST, (p > threshold).sum()) for p in sure]]

    p = {
        "raw": rows(sure),
        "calibrated": rows(honest),
        "cc": points(0.5),
        "cc_tuned": points(0.7),
        "all_zero": points(2),
    }
    rps = scores.rps(p["raw"], truth)
    existence = scores.reliability(np.concatenate(sure), rng.random(sum(q.size for q in sure)) < 0.5)
    return {
        "format": 2, "version": "0.1.0", "results": "out", "truth": {"kind": "masks", "path": "masks"},
        "n_scans": N, "n_groups": N, "group_by": None, "protocol": CountingProtocol(min_volume_mm3=3).to_dict(),
        "bins": None,
        "of": "lesions", "n_resamples": 1000, "seed": 0, "confidence": 0.95, "nll_floor": 1e-6,
        "methods": {key: scored(key, rows, truth) for key, rows in p.items()},
        "differences": {
            f"calibrated - {other}": {"rps": around(-0.2), "mae": around(-0.1), "accuracy": around(0.1)}
            for other in ("raw", "cc", "cc_tuned", "all_zero")
        },
        "agreement": {
            "bland_altman": {"is_log": False, "mean": around(0.1), "low": -1.5, "high": 1.7},
            "terciles": [third(0, 1), third(2, 2), third(3, 4)],
        },
        "guaranteed": [],
        "lesions": {
            "rule": OWNERSHIP_RULE, "n_lesions": 210, "n_candidates": 260, "n_hit": 180, "n_shared": 7,
            "n_missed": 23, "n_split": 5, "n_merged": 7, "sensitivity": around(0.86), "shared": around(0.03),
            "missed": around(0.11), "false_positives_per_scan": around(1.9),
            "sensitivity_above_half": around(0.8), "false_positives_per_scan_above_half": around(0.6),
            "reliability": binned(existence),
        },
        "threshold_curve": {"threshold": [0.3, 0.5, 0.7], "cc_mae": [0.9, 0.5, 0.45], "cc_accuracy": [0.4, 0.5, 0.5]},
        "notes": ["12 maps look polarised."],
        "scans": [
            {"scan": f"sub-{i:02}", "group": f"p{i // 2}", "truth": int(truth[i]), "predicted": int(row.argmax()),
             "median": int(row.argmax()), "expected": float(row @ np.arange(LAST + 1)),
             "interval90_low": 0, "interval90_high": LAST, "p_truth": float(row[truth[i]]), "rps": float(rps[i]),
             "entropy": 0.5, "cc": 1}
            for i, row in enumerate(p["raw"])
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(simulated, tmp_path_factory):
    """With the page of the whole evaluation, as it is."""
    folder = tmp_path_factory.mktemp("evaluation")
    (folder / "evaluation.json").write_text(json.dumps(simulated), "utf-8")
    write_evaluation_page(folder)
    return folder


@pytest.fixture
def page(folder):
    return Page((folder / "evaluation.html").read_text("utf-8"))


@pytest.fixture
def evaluation(simulated):
    return json.loads(json.dumps(simulated))


@pytest.fixture
def page_of(tmp_path):
    def write(content):
        (tmp_path / "evaluation.json").write_text(json.dumps(content), "utf-8")
        return Page(write_evaluation_page(tmp_path).read_text("utf-8"))

    return write


def only(evaluation, *keys):
    """Without the other methods, and without what is optional."""
    evaluation["methods"] = {key: evaluation["methods"][key] for key in keys}
    return evaluation | {"lesions": None, "threshold_curve": None, "differences": {}, "notes": []}


def test_page_needs_no_other_file_and_runs_no_script(page):
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe"}
    assert not re.search(r"https?://|@import|url\((?!#)", page.source)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', page.source)) <= set(ids)


def test_headline_is_in_lesions_and_has_intervals(page_of, evaluation):
    scores = evaluation["methods"]["calibrated"]["scores"]
    scores |= {"mae": around(0.3), "bias": around(-0.02), "accuracy": around(0.62), "within_10_percent": around(0.7)}
    text = page_of(evaluation).text
    assert "How good are the counts of 60 scans?" in text
    assert "The count of lesioncount, calibrated is off by 0.30 lesions [0.25 to 0.35] on average; a scan has" in text
    assert "Its bias is −0.02 lesions [−0.07 to 0.03]: neither clearly too high nor too low." in text
    assert "The most probable count is right in 62 % [57 to 67 %] of scans." in text
    assert "The median is within 10 % of the truth in 70 % [65 to 75 %]" in text
    assert "The 90 % interval holds the truth in 91 % [86 to 96 %]." in text
    assert "and more" not in text
    assert "12 maps look polarised." in text


@pytest.mark.parametrize(("bias", "words"), [(-1.0, "too low: .* too few"), (1.0, "too high: .* too many")])
def test_systematic_error_is_said_before_anything_else(page_of, evaluation, bias, words):
    scores = evaluation["methods"]["calibrated"]["scores"]
    scores |= {"bias": around(bias), "relative_bias": around(bias / 2, 0.1)}
    page = page_of(evaluation)
    assert re.search(
        rf"The counts are systematically {words} \(95 % interval 40 to 60 %\), or 1 lesions per", page.text
    )
    assert page.source.index('class="alarm"') < page.source.index('class="lead"')


@pytest.mark.parametrize(("n_groups", "is_judged"), [(2, False), (9, False), (10, True)])
def test_a_few_scans_bear_no_verdict(page_of, evaluation, n_groups, is_judged):
    evaluation["n_groups"] = n_groups
    evaluation["methods"]["calibrated"]["scores"] |= {"bias": around(1.0), "relative_bias": around(0.5, 0.1)}
    text = page_of(evaluation).text
    assert ("systematically too high" in text) == is_judged
    assert (f"{n_groups} groups are too few to tell whether counts are too high or too low" in text) != is_judged
    assert ("too few scans to tell" in text) != is_judged
    assert ("By RPS, it is" in text) == is_judged


@pytest.mark.parametrize(("bias", "share"), [(around(0.04), 0.5), (around(-1.0), -0.09), (around(1.0), float("nan"))])
def test_small_or_unclear_bias_is_no_alarm(page_of, evaluation, bias, share):
    evaluation["methods"]["calibrated"]["scores"] |= {"bias": bias, "relative_bias": around(share)}
    assert "systematically" not in page_of(evaluation).text


def test_tripled_truth_cannot_be_misread(page_of, evaluation):
    """Every count a third of the truth, and sure of it: no number on top of the page looks good."""
    for scan in evaluation["scans"]:
        scan |= {"truth": 60, "median": 20, "expected": 20.0, "predicted": 20, "interval90_low": 20,
                 "interval90_high": 20, "p_truth": 0.0, "rps": 40.0}  # fmt: skip
    content = only(evaluation, "raw")
    content["methods"]["raw"]["scores"] |= {
        "rps": around(40), "mae": around(40), "bias": around(-40), "relative_bias": around(-2 / 3, 0.01),
        **{name: around(0, 0) for name in ("accuracy", "within_1", "within_10_percent", "coverage90")},
    }  # fmt: skip
    text = page_of(content).text
    assert "systematically too low: 1200 lesions are expected, but there are 3600. That is 67 % too few" in text
    assert "off by 40.0 lesions" in text
    assert "right in 0 % of scans" in text
    assert "100 %" not in text[: text.index("Do predicted and true counts agree?")]


def test_agreement_is_shown_by_thirds(page_of, evaluation):
    page = page_of(evaluation)
    assert "Lin's concordance is 0.800 (0.750 to 0.850); 1 is perfect." in page.text
    assert "in lesions: 0 is right" in page.text
    assert "0 to 1 20 0.70 0.65 to 0.75 −0.30 −0.35 to −0.25 85 % 80 to 90 % 2.50" in page.text
    assert "2 20 0.70" in page.text
    evaluation["agreement"]["bland_altman"]["is_log"] = True
    assert "as ratios of count plus 1" in page_of(evaluation).text


def test_guaranteed_intervals_have_coverage_and_width_by_predicted_count(page_of, evaluation):
    assert "guaranteed" not in page_of(evaluation).text
    text = page_of(evaluation | {"guaranteed": [third(0, 2), third(3, 40)]}).text
    assert "Do the conformal intervals hold?" in text
    assert "3 to 40 20 85 % 80 to 90 % 2.50 2.45 to 2.55" in text


def test_bins_are_shown_only_where_they_were_asked_for(page_of, evaluation, tmp_path):
    page = page_of(with_bins(evaluation))
    assert "Which counts are mistaken for which?" in page.headings
    assert "Counts of 4 and more are one class, as asked" in page.text
    assert "of scans (counts from 4 on as one class)" in page.text
    assert "In count accuracy" not in page.text
    assert "Count accuracy" in page.text
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == FIGURES | CONFUSIONS


def test_very_many_scans_are_not_all_drawn(page_of, evaluation):
    evaluation["scans"] = [scan | {"scan": f"s{i}"} for i in range(15) for scan in evaluation["scans"]]
    assert "Both figures show 600 of 900 scans." in page_of(evaluation | {"n_scans": 900}).text


def test_every_score_has_its_meaning_direction_and_values_of_all_methods(page_of, evaluation):
    evaluation["methods"]["cc"]["scores"]["bias"] = around(-0.25)
    page = page_of(evaluation)
    table = page.source[page.source.index('<table class="scores">') :].partition("</table>")[0]
    rows = table.split("<tr>")[2:]
    assert len(rows) == 20
    for row in rows:
        assert row.count("<td>") == 5
        assert re.search(r"<b>.*(better|best|right)", row)
    assert all(f"</i>{name}</th>" in table for name in NAMES.values())
    assert "−0.25<small>−0.30 to −0.20</small>" in table
    assert [cell for row in rows if "AUROC" in row for cell in re.findall(r"<td>(.*?)</td>", row)][2:] == ["–"] * 3
    assert "as if it had probability 1e-06" in table


def test_better_than_all_is_said_plainly(page):
    text = page.text
    assert "By RPS, it is better than components above 0.5, components above 0.7 and all-zero." in text
    assert "difference −0.200, 95 % interval −0.250 to −0.150." in text
    assert "difference −0.10, 95 % interval −0.15 to −0.05." in text
    assert "no clear difference" not in text


def test_difference_whose_interval_includes_zero_is_not_clear(page_of, evaluation):
    evaluation["differences"]["calibrated - cc"] = {"rps": around(-0.02), "mae": around(0.01)}
    text = page_of(evaluation).text
    assert "By RPS, it shows no clear difference from components above 0.5." in text
    assert "By mean error, it shows no clear difference from components above 0.5." in text
    assert "components above 0.5: no clear difference RPS" in text
    assert "95 % interval −0.070 to +0.030, which includes 0." in text


def test_baseline_that_is_better_is_said_first(page_of, evaluation):
    evaluation["differences"]["calibrated - cc_tuned"] = {"rps": around(0.2), "mae": around(0.2)}
    page = page_of(evaluation)
    worse, better = "By RPS, it is worse than components above 0.7.", "By RPS, it is better than"
    assert page.text.index(worse) < page.text.index(better)
    assert "By mean error, it is worse than components above 0.7." in page.text
    assert page.source.count('<li class="worse">') == 1


def test_gain_in_rps_does_not_hide_that_the_error_is_not_clear(page_of, evaluation):
    evaluation["differences"]["calibrated - cc"]["mae"] = around(0.0)
    text = page_of(evaluation).text
    assert "components above 0.5: better by RPS, no clear difference by mean error" in text
    assert "difference 0.00" in text


def test_classes_are_compared_by_accuracy(page_of, evaluation):
    evaluation["differences"]["calibrated - cc"]["accuracy"] = around(0.0)
    text = page_of(with_bins(evaluation)).text
    assert "components above 0.5: better by RPS, no clear difference by count accuracy" in text
    assert "difference 0.0 percentage points" in text


def test_difference_without_interval_is_not_clear(page_of, evaluation):
    evaluation["differences"]["calibrated - cc"]["rps"] = {"estimate": -0.9, "low": None, "high": None}
    text = page_of(evaluation).text
    assert "By RPS, it shows no clear difference from components above 0.5." in text
    assert "difference −0.900, without an interval." in text


def test_difference_may_be_given_the_other_way_round(page_of, evaluation):
    evaluation["differences"]["cc - calibrated"] = {"rps": around(-0.3), "mae": around(-0.2)}
    del evaluation["differences"]["calibrated - cc"]
    assert "By RPS, it is worse than components above 0.5." in page_of(evaluation).text


def test_raw_stands_in_where_only_it_was_compared(page_of, evaluation):
    evaluation["differences"] = {"raw - cc": {"rps": around(-0.2), "mae": around(-0.2)}}
    text = page_of(evaluation).text
    assert "By RPS, the count before calibration is better than components above 0.5." in text


@pytest.mark.parametrize(
    ("rps", "sentence"),
    [(0.2, "it is better than"), (1.0, "it shows no clear difference from"), (1.8, "it is worse than")],
)
def test_methods_that_were_not_paired_are_compared_by_their_intervals(page_of, evaluation, rps, sentence):
    content = only(evaluation, "raw", "all_zero")
    content["methods"]["raw"]["scores"]["rps"] = around(rps)
    content["methods"]["all_zero"]["scores"]["rps"] = around(1.0)
    text = page_of(content).text
    assert f"By RPS, {sentence} all-zero." in text
    assert f"RPS {SCORES['rps'].text(rps)} against 1.00; the two were compared by their intervals" in text


def test_figures_are_on_the_page_described_and_saved_as_files(page, folder):
    shown = [attributes for tag, attributes in page.tags if attributes.get("class") == "figure"]
    files = {path.stem: ET.fromstring(path.read_text("utf-8")) for path in (folder / "figures").iterdir()}  # noqa: S314 - our own
    assert files.keys() == FIGURES
    assert len(shown) == len(FIGURES)
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in shown)
    axes = {name: " ".join("".join(text.itertext()) for text in file.iter("{http://www.w3.org/2000/svg}text"))
            for name, file in files.items()}  # fmt: skip
    assert "probability of the most probable count" in axes["reliability"]
    assert "existence probability of a candidate" in axes["existence"]
    assert "share of scans kept, the most certain first" in axes["certainty"]
    assert "threshold τ (probability)" in axes["threshold"]
    assert "true number of lesions" in axes["agreement"]
    assert "predicted minus true number" in axes["bland-altman"]
    assert "upper limit +1.7" in axes["bland-altman"]
    assert "where the truth lies in its distribution" in axes["pit"]
    assert "mean absolute error, in lesions" in axes["threshold"]


def test_number_of_scans_in_each_bin_is_in_the_reliability_figure(page_of, evaluation, tmp_path):
    empty, full = [0] * 10, [None] * 10
    n, p = empty.copy(), full.copy()
    n[6], p[6], n[9], p[9] = 37, 0.65, 3, 0.95
    evaluation["methods"]["raw"]["reliability"] = {"n": n, "confidence": p, "hit_rate": p}
    page = page_of(only(evaluation, "raw"))
    figure = (tmp_path / "figures" / "reliability.svg").read_text("utf-8")
    assert ">37</text>" in figure
    assert ">3</text>" in figure
    assert "Hollow points stand on fewer than 10 scans" in page.text


def test_lesion_section_names_the_rule(page):
    text = page.text
    assert f"A candidate counts as a lesion by this rule: {OWNERSHIP_RULE}. There are 210 true lesions" in text
    assert "share of true lesions that have a candidate of their own, by the rule above" in text
    assert "180 lesions with a candidate of their own 7 lesions that share the candidate of another" in text
    assert "23 lesions missed: no candidate 5 lesions split" in text
    assert "Sensitivity, existence above 0.5" in text
    assert "86 % 81 to 91 %" in text


def test_lesion_score_without_interval_has_a_dash(page_of, evaluation):
    evaluation["lesions"] |= {"sensitivity": {"estimate": 0.42, "low": None, "high": None}, "reliability": None}
    page = page_of(evaluation)
    assert "<td>42\u00a0%</td><td>–</td>" in page.source
    assert "Existence probabilities are right when" not in page.text


def test_what_is_missing_leaves_no_empty_section(page_of, evaluation, tmp_path):
    content = only(evaluation, "raw", "cc")
    content["methods"]["raw"] |= {"reliability": None, "certainty": None, "pit": None, "coverage": None}
    page = page_of(content | {"scans": [], "agreement": None})
    assert not (tmp_path / "figures").exists()
    assert page.headings == ["Beside other ways to count", "All scores", "Scans to look at", "What was compared"]
    assert "No scan has a score." in page.text
    assert "None" not in page.text


def test_empty_bins_and_undefined_scores_are_left_out(page_of, evaluation):
    raw = only(evaluation, "raw")["methods"]["raw"]
    raw["reliability"] = {"n": [0] * 10, "confidence": [None] * 10, "hit_rate": [None] * 10}
    raw["pit"] = None
    raw["scores"] = {name: {"estimate": float("nan"), "low": None, "high": None} for name in raw["scores"]}
    page = page_of(only(evaluation, "raw"))
    assert "Can the probabilities be believed?" not in page.headings
    assert "nan" not in page.text.lower().split()
    assert "is off by – lesions" in page.text


def test_where_no_count_can_be_hit_there_is_no_calibration_error(page_of, evaluation):
    content = only(evaluation, "raw")
    content["methods"]["raw"]["reliability"] = None
    for name in ("ece", "mce", "auroc"):
        content["methods"]["raw"]["scores"][name] = None
    text = page_of(content).text
    assert "There is no calibration error (ECE) of the most probable count" in text
    assert "Calibration error, mean" not in text


def test_most_wrong_scans_are_listed_worst_first(page, simulated):
    listed = re.findall(r'<span class="name">(.*?)</span>', page.source)
    worst = sorted(simulated["scans"], key=lambda scan: -scan["rps"])[:20]
    assert listed == [scan["scan"] for scan in worst]
    assert "The 20 of 60 scans with the largest RPS, in lesions, the worst first" in page.text


def test_groups_are_named_where_scans_were_grouped(page_of, evaluation):
    text = page_of(evaluation | {"group_by": "patient", "n_groups": 30}).text
    assert "bootstrap over 30 groups (patient) with all their scans, 1000 resamples, seed 0" in text
    assert "as if scans were independent" in text
    assert "Scan Patient True" in text


def test_protocol_truth_and_methods_are_named(page_of, evaluation):
    text = page_of(evaluation | {"truth": {"kind": "counts", "path": "counts.tsv"}}).text
    assert "voxels above 0.1, connected through edges, at least 3 mm³" in text
    assert "a table of counts: counts.tsv" in text
    assert all(f"{name} about {key}" in text for key, name in NAMES.items())


def test_everything_from_the_file_is_escaped(page_of, evaluation, tmp_path):
    hostile = "<img src=x onerror=alert(1)> $x_1$ & \"'"
    for method in evaluation["methods"].values():
        method |= {"name": hostile, "about": hostile}
    evaluation["scans"][0] |= {"scan": hostile, "group": hostile, "rps": 9.0}
    evaluation["lesions"]["rule"] = hostile
    evaluation |= {"notes": [hostile], "results": hostile, "truth": {"kind": "masks", "path": hostile}}
    page = page_of(evaluation | {"group_by": hostile, "version": hostile})
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert "<img" not in page.source
    assert "$x_1$" in page.text
    for path in (tmp_path / "figures").iterdir():
        ET.fromstring(path.read_text("utf-8"))  # noqa: S314 - our own


def test_same_evaluation_makes_the_same_figures(page_of, evaluation, folder, tmp_path):
    before = {path.name: path.read_bytes() for path in (folder / "figures").iterdir()}
    page_of(evaluation)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}


def test_folder_without_evaluation_is_an_error(tmp_path):
    with pytest.raises(MapFileError, match=r"evaluation\.json is not there .* lesioncount evaluate RESULTS"):
        write_evaluation_page(tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not what this version reads"),
        ("[]", 'expected an object with "format": 2'),
        ('{"format": 3}', 'expected an object with "format": 2'),
        ('{"format": 2, "methods": {}}', "it has no method 'raw'"),
        ('{"format": 2}', "missing required field `methods`"),
        ('{"format": 2, "methods": {"raw": []}}', "not what this version reads"),
    ],
)
def test_file_that_is_no_evaluation_is_an_error(tmp_path, text, reason):
    (tmp_path / "evaluation.json").write_text(text, "utf-8")
    with pytest.raises(MapFileError, match=reason):
        write_evaluation_page(tmp_path)
    assert not (tmp_path / "evaluation.html").exists()


def test_folder_of_figures_that_cannot_be_made_is_an_error(page_of, evaluation, tmp_path):
    (tmp_path / "figures").write_text("in the way", "utf-8")
    with pytest.raises(MapFileError, match="figures cannot be used"):
        page_of(evaluation)


def places(value, path=()):
    """The path of every value in a JSON document; of lists, of the first element only."""
    yield path
    inside = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*path, key))


def replaced(content, path, value):
    changed = json.loads(json.dumps(content))
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


ODD = (None, True, -1, 0.5, 10**400, "x", [], [[]], ["x"], [None], {}, {"x": 1})


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_value_anywhere_in_the_file_is_read_or_refused_in_words(evaluation, tmp_path, odd):
    """Whatever stands in the file, nobody sees a traceback: neither from reading it, nor from filling the page."""
    evaluation["methods"] = {"raw": evaluation["methods"]["raw"]}
    n_refused = 0
    for path in list(places(evaluation))[1:]:
        (tmp_path / "evaluation.json").write_text(json.dumps(replaced(evaluation, path, odd)), "utf-8")
        try:
            read = read_evaluation(tmp_path)
        except MapFileError:
            n_refused += 1
        else:
            assert len(path) > 1 or rendered(read, {})  # a page for each value would take minutes
    assert n_refused > 20


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("count", [-1, 0, 7, 10**18])
def test_counts_of_any_size_are_drawn(page_of, evaluation, count, is_log):
    content = only(evaluation, "raw")
    content["scans"] = [scan | {"truth": count, "median": count} for scan in content["scans"]]
    content["agreement"]["bland_altman"] |= {"is_log": is_log, "low": -1e15 if count > 7 else None, "high": 900.0}
    assert "Do predicted and true counts agree?" in page_of(content).headings


@pytest.mark.parametrize("text", ["null", "3", '"x"', "[[" * 100_000, '{"format": 1e999}', "\x00", ""], ids=range(7))
def test_text_that_is_no_evaluation_is_refused_in_words(tmp_path, text):
    (tmp_path / "evaluation.json").write_text(text, "utf-8")
    with pytest.raises(MapFileError, match="Expected an evaluation in"):
        read_evaluation(tmp_path)


def test_evaluation_survives_its_file(evaluation):
    read = Evaluation.from_dict(evaluation)
    again = Evaluation.from_dict(json.loads(json.dumps(read.to_dict())))
    assert read.to_dict().keys() == evaluation.keys()
    assert read.to_dict()["methods"]["raw"].keys() == evaluation["methods"]["raw"].keys()
    assert list(read.to_dict()["scans"]) == list(again.to_dict()["scans"]) == evaluation["scans"]
    assert read.to_dict()["lesions"].keys() == evaluation["lesions"].keys()
    assert again.differences == read.differences
    np.testing.assert_array_equal(again.lesions.reliability.hit_rate, read.lesions.reliability.hit_rate)
    assert again.agreement == read.agreement
    assert json.loads(json.dumps(read.to_dict()["agreement"])) == evaluation["agreement"]
    assert again.methods["raw"].pit == read.methods["raw"].pit
    assert again.methods["raw"].coverage == read.methods["raw"].coverage
    binned = Evaluation.from_dict(with_bins(evaluation))
    assert Evaluation.from_dict(json.loads(json.dumps(binned.to_dict()))).bins == LAST
    assert (binned.methods["cc"].confusion.diagonal() == 12).all()


def test_page_of_an_evaluation_needs_no_file(evaluation, tmp_path):
    page = Page(write_evaluation_page(tmp_path, Evaluation.from_dict(evaluation)).read_text("utf-8"))
    assert "How good are the counts of 60 scans?" in page.text
    assert not (tmp_path / "evaluation.json").exists()
