"""From ten scans on: an average over what they allow, which is drawn as it should be."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest
from trust.fitting.simulated import cohort, without_lesions

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting import CalibrationFit, KnownTruth, fit_calibration
from lesioncount.trust.fitting import fit as fitting
from lesioncount.trust.fitting.candidates_of_scans import Numbers
from lesioncount.trust.fitting.posterior import weighted_draws
from lesioncount.trust.fitting.prior import DRAWN, LEARNT, anchor_of, bounds, learnt_for, numbers_of
from lesioncount.trust.regional_count import RegionalCount
from lesioncount.trust.scores import Predictions

OFFSET, SPREAD, SHAPE = (Numbers._fields.index(name) for name in ("offset", "spread", "extra_shape"))


def scans(n, seed=0, **numbers):
    return without_lesions(cohort(n, candidates=12, offset=-2.0, seed=seed, **numbers))


def test_draws_have_the_moments_of_the_density():
    rng = np.random.default_rng(1)
    root = rng.standard_normal((6, 6))
    covariance, centre = root @ root.T / 6 + np.eye(6) / 4, rng.standard_normal(6)
    inverse = np.linalg.inv(covariance)
    found = weighted_draws(lambda x: float(-(x - centre) @ inverse @ (x - centre) / 2), centre + 0.3, np.eye(6), seed=3)
    assert found.effective > 150
    np.testing.assert_allclose(found.mean, centre, atol=0.25)
    np.testing.assert_allclose(np.diag(found.covariance), np.diag(covariance), rtol=0.35)
    assert found.log_evidence == pytest.approx(
        3 * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] / 2, abs=0.15
    )


def test_the_prior_of_few_scans_is_kept_and_older_files_without_it_are_read():
    truth = scans(20)
    fit = CalibrationFit(fit_calibration(truth))
    kept = fit.calibration.prior
    assert kept["others"]["anchor"] == learnt_for(truth).anchor
    assert kept["others"]["odds_of_as_it_is"] == pytest.approx(1 / 3)
    assert list(kept["centre"]) == list(kept["width"])
    assert "weights" not in kept["centre"]
    text = fit.to_json()
    read = CalibrationFit.from_json(text)
    assert (read.calibration, read.to_json()) == (fit.calibration, text)
    older = CalibrationFit(replace(fit.calibration, prior={}))
    assert "prior" not in json.loads(older.to_json())["calibration"]
    assert CalibrationFit.from_json(older.to_json()).calibration == older.calibration
    assert fit_calibration(scans(220)).prior == {}


@pytest.mark.parametrize("prior", [[], {"centre": 1.0}, {"centre": {"offset": "x"}}, {"centre": {"offset": math.nan}}])
def test_a_prior_that_is_not_numbers_by_name_is_refused(prior):
    with pytest.raises(CalibrationError, match="Expected the prior to be numbers"):
        lc.Calibration(prior=prior)


def test_draws_are_those_of_a_long_chain():
    truth = scans(15)
    prior, likelihood, nodes = learnt_for(truth), fitting._likelihood(truth), fitting._nodes_for(truth)
    point, _ = fitting._lowest(likelihood, fitting._start(truth, None, prior), nodes, prior)
    found = fitting._posterior(likelihood, point, nodes, prior)
    chain = _chain(lambda x: -fitting._cost(likelihood, fitting._full(point, x), nodes, prior), found)
    for place, name in enumerate(("slope", "offset", "spread")):
        spread = math.sqrt(found.covariance[place, place])
        assert found.mean[place] == pytest.approx(chain[:, place].mean(), abs=0.35 * spread), name
        assert spread == pytest.approx(chain[:, place].std(), rel=0.35), name


def test_the_draws_that_ship_have_the_moments_of_all():
    """Those of one calibration, and many more of them."""
    found = _found(scans(15))
    width = np.sqrt(np.diag(found.covariance))
    for n, seeds, near in ((400, 3, 0.1), (fitting.N_DRAWS, 50, 0.1)):
        drawn = np.concatenate([found.evenly(n, seed) for seed in range(seeds)])
        np.testing.assert_allclose((drawn.mean(axis=0) - found.mean) / width, 0, atol=near)
        np.testing.assert_allclose(drawn.std(axis=0) / width, 1, atol=near)


def test_the_truth_is_anywhere_among_the_draws():
    """Calibrations drawn from the prior: the place of each in what a cohort of 15 scans says of it is uniform."""
    rng, prior = np.random.default_rng(0), replace(LEARNT, anchor=0.0)
    ranks = []
    for seed in range(50):
        true = _from_prior(prior, rng)
        tables = without_lesions(cohort(15, candidates=6, seed=seed))
        corrected = tables.distributions(fitting.as_calibration(numbers_of(true), tables))
        truth = KnownTruth.of(tables.candidates, [one.rvs(random_state=rng) for one in corrected])
        drawn = _found(truth, prior, true).evenly(39)
        ranks.append([(drawn[:, place] < true[DRAWN[place]]).sum() + rng.random() for place in range(3)])
    for of, name in zip(np.transpose(ranks) / 40, ("slope", "offset", "spread"), strict=True):
        assert kstest(of, "uniform").pvalue > 0.01, name
        assert kstest(np.abs(2 * of - 1), "uniform").pvalue > 0.01, name  # too many at the ends, or in the middle


def _found(truth, prior=None, near=None):
    """The posterior of some scans."""
    prior, likelihood, nodes = prior or learnt_for(truth), fitting._likelihood(truth), fitting._nodes_for(truth)
    start = fitting._start(truth, None, prior) if near is None else near
    point, _ = fitting._lowest(likelihood, start, nodes, prior)
    if near is not None:
        point[SHAPE] = near[SHAPE]
    return fitting._posterior(likelihood, point, nodes, prior)


def _from_prior(prior, rng):
    """A point; as rarely with a large spread as the prior has one. Extra lesions have a shape of 1."""
    lowest, highest = bounds(7)
    while True:
        noise = np.where(prior.is_heavy, 0.8 * rng.standard_t(4, 8), rng.standard_normal(8))
        noise[OFFSET] = rng.standard_cauchy()
        point = (prior.centre + prior.width * noise)[:7]
        point[SHAPE] = 0.0
        large = np.exp(2 * point[SPREAD]) / prior.large_spread**2
        if np.all((point >= lowest) & (point <= highest)) and rng.random() < np.exp(-large / 2):
            return point


def _chain(log_density, found, n=6000):
    """Random-walk Metropolis."""
    rng, lowest_highest = np.random.default_rng(0), [bound[list(DRAWN)] for bound in bounds(7)]
    root = np.linalg.cholesky(found.covariance) * 2.38 / math.sqrt(len(found.mean))
    here, value, seen = found.mean, log_density(found.mean), []
    for _ in range(n):
        there = here + root @ rng.standard_normal(len(here))
        inside = np.all((there >= lowest_highest[0]) & (there <= lowest_highest[1]))
        new = log_density(there) if inside else -math.inf
        if math.log(rng.random()) < new - value:
            here, value = there, new
        seen.append(here)
    return np.array(seen[n // 6 :])


def test_ten_scans_are_enough_and_nine_are_not():
    fitted = fit_calibration(scans(10))
    assert len(fitted.members) == fitting.N_DRAWS
    with pytest.raises(CalibrationError, match="at least 10 scans"):
        fit_calibration(scans(9))


def test_an_average_is_a_calibration_like_others():
    truth = scans(12)
    fitted = fit_calibration(truth)
    table = truth.candidates[0]
    counts = np.arange(30)
    mean = np.mean([one.distribution(table).pmf(counts) for one in fitted.members], axis=0)
    found = fitted.distribution(table)
    np.testing.assert_allclose(found.pmf(counts), mean, atol=0.01)  # fewer nodes for each
    assert found.pmf(np.arange(200)).sum() == pytest.approx(1)
    at = fitted.at_nodes(table)
    assert at.weights.sum() == pytest.approx(1)
    assert at.weights @ (at.existence.sum(axis=1) + at.extra) == pytest.approx(found.mean())
    assert fitted.existence(table).sum() == pytest.approx(at.weights @ at.existence.sum(axis=1), rel=0.02)
    everywhere = RegionalCount(fitted, table, {"all": np.ones(len(table), dtype=bool)})
    np.testing.assert_allclose(everywhere["all"].pmf(counts), found.pmf(counts), atol=1e-9)
    again = lc.Calibration.from_dict(fitted.to_dict())
    assert again == fitted
    assert "averaged over 40" in str(again)


@pytest.mark.parametrize(
    "draws", [{"slope": []}, {"slope": [1.0], "offset": [1.0, 2.0]}, {"ripple": [0.1]}, {"slope": [1.0] * 1001}, [1.0]]
)
def test_draws_that_are_none_are_refused(draws):
    with pytest.raises(CalibrationError, match="draws"):
        lc.Calibration.from_dict({"draws": draws})


def test_intervals_of_maps_that_are_too_sure_become_honest():
    """Three times too sure: 20 scans make intervals hold what they say nearly, and counts no worse."""
    judged = _too_sure(200, seed=99)
    rps, coverage = np.mean([_scores(judged, fit_calibration(_too_sure(20, seed))) for seed in range(12)], axis=0)
    raw_rps, raw_coverage = _scores(judged, lc.Calibration())
    assert rps < raw_rps
    assert raw_coverage < 0.84
    assert coverage > 0.89


def _too_sure(n, seed):
    honest = cohort(n, candidates=12, seed=seed)
    return KnownTruth.of([lc.Calibration(slope=3).existence(one) for one in honest.candidates], honest.counts)


def test_counts_that_are_right_stay_nearly_so():
    truth = without_lesions(cohort(60, candidates=6))
    fitted = fit_calibration(truth)
    new = cohort(400, candidates=6, seed=5)
    raw, averaged = (
        Predictions.of_distributions(new.distributions(one), new.counts).rps.mean() for one in (new.as_it_is, fitted)
    )
    assert averaged < 1.04 * raw


def test_few_scans_are_calibrated_better_with_what_others_taught():
    """Against the fit that knew nothing: RPS and coverage of scans that were not used, over twelve cohorts."""
    new = scans(150, seed=99, slope=1.6, spread=1.0)
    taught, alone = [], []
    for seed in range(6):
        few = scans(10, seed=seed, slope=1.6, spread=1.0)
        if few.counts.sum() < 5:
            continue
        best = fitting._of_many(few, None)
        taught.append(_scores(new, fitting.best_calibration(few)))
        alone.append(_scores(new, best))
    taught, alone = np.mean(taught, axis=0), np.mean(alone, axis=0)
    assert taught[0] < 1.02 * alone[0]
    assert taught[1] > alone[1] - 0.01


def _scores(truth, calibration):
    found = Predictions.of_distributions(truth.distributions(calibration), truth.counts)
    return found.means["rps"].mean(), found.means["coverage90"].mean()


def test_the_anchor_is_where_the_mean_count_is_reached():
    tables = [lc.CandidateTable.of([0.9, 0.8, 0.3], saddle=[0.0, 0.5, 0.0]), lc.CandidateTable.of([0.6])]
    logits = {p: math.log(p / (1 - p)) for p in (0.9, 0.8, 0.6, 0.3)}
    assert anchor_of(tables, 0.5) == pytest.approx(logits[0.9])
    assert anchor_of(tables, 1.0) == pytest.approx(logits[0.8])
    assert anchor_of(tables, 1.5) == pytest.approx(logits[0.6])
    assert anchor_of(tables, 40) == pytest.approx(logits[0.3])


def test_the_gradient_of_the_prior_is_that_of_its_cost():
    prior = learnt_for(scans(10))
    point = LEARNT.centre[:-1] + 0.3
    _, gradient = prior.penalty(point)
    steps = 1e-5 * np.eye(len(point))
    numeric = [(prior.penalty(point + step)[0] - prior.penalty(point - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    assert numbers_of(point).slope == pytest.approx(math.exp(point[0]))


def test_ten_scans_are_held_out_and_remembered():
    fit = CalibrationFit.fit(scans(12))
    assert fit.held_out is not None
    assert len(fit.scans.pits) == fit.scans.n_scans == 12
    again = CalibrationFit.from_json(fit.to_json())
    assert again.to_json() == fit.to_json()


def test_truth_without_candidates_is_calibrated_or_refused_in_words():
    truth = KnownTruth.of([[] for _ in range(12)], [1] * 12)
    with pytest.raises(CalibrationError, match="candidates"):
        fit_calibration(truth)
