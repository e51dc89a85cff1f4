"""Calibrations of changes: fits find the coupling, derivatives follow, and a file keeps what it is for."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lesioncount as lc
from lesioncount.changes.coupling import DEFAULT_COUPLING, only_now
from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit, KnownTruth, fit_calibration
from lesioncount.trust.fitting.candidates_of_scans import Height, Numbers
from lesioncount.trust.fitting.candidates_of_scans import only_now as only_now_with_derivatives
from lesioncount.trust.fitting.evidence import ConformalFit
from lesioncount.trust.fitting.likelihood import CountLikelihood, LesionLikelihood


@cache
def pairs(n, *, coupling, offset=0.0, counted="new", candidates=4.0, seed=0, peaks=False):
    """Pairs of scans whose changes are drawn with the probability that this calibration gives them."""
    rng = np.random.default_rng(seed)
    truth = lc.Calibration(offset=offset, coupling=coupling, counted=counted)
    sizes = rng.poisson(candidates, n)
    heights = [rng.uniform(0.1, 1, k) for k in sizes]
    saddles = [p * rng.uniform(0, 0.9, len(p)) * (rng.random(len(p)) < 0.4) if peaks else None for p in heights]
    # Half of the places were empty before, half were seen before with some noise.
    was_seen = [rng.random(len(p)) < 0.5 for p in heights]
    before = [np.where(seen, p * rng.uniform(0.2, 1.2, len(p)), rng.uniform(0, 0.1, len(p)))
              for seen, p in zip(was_seen, heights, strict=True)]  # fmt: skip
    others = [u.clip(0, 1) for u in before]
    risen = [p * rng.uniform(0.8, 1, len(p)) for p in heights]
    given = zip(heights, saddles, others, risen, strict=True)
    tables = [CandidateTable.of(p, saddle=d, other=u, risen=r) for p, d, u, r in given]
    owns = [rng.random(len(table)) < truth.existence(table) for table in tables]
    return KnownTruth.of(tables, [one.sum() for one in owns], owns=owns, counted=counted)


def counts_only(truth):
    return replace(truth, owns=None)


class TestFits:
    @pytest.mark.parametrize("coupling", [0.0, 1.0, 4.0])
    def test_find_the_coupling_that_was_put_in(self, coupling):
        truth = pairs(250, coupling=coupling, candidates=6)
        fitted = fit_calibration(truth)
        assert fitted.counted == "new"
        mean = [[one.mean() for one in truth.distributions(used)] for used in (fitted, lc.Calibration(
            coupling=coupling, counted="new"))]  # fmt: skip
        assert np.abs(np.subtract(*mean)).mean() < 0.12
        assert abs(fitted.coupling - coupling) <= 1

    def test_find_the_offset_from_counts_alone(self):
        truth = counts_only(pairs(300, coupling=2.0, offset=-1.0))
        fitted = fit_calibration(truth)
        assert fitted.offset == pytest.approx(-1.0, abs=0.5)
        means = [one.mean() for one in truth.distributions(fitted)]
        assert np.mean(means) == pytest.approx(truth.counts.mean(), rel=0.1)

    @pytest.mark.parametrize("counted", ["gone", "persisting"])
    def test_are_of_what_was_counted(self, counted):
        truth = pairs(120, coupling=3.0, offset=-0.8, counted=counted)
        fitted = fit_calibration(truth, protocol=CountingProtocol(0.2))
        assert (fitted.counted, fitted.protocol) == (counted, CountingProtocol(0.2))
        expected = np.mean([one.mean() for one in truth.distributions(fitted)])
        assert expected == pytest.approx(truth.counts.mean(), rel=0.15)

    def test_leave_the_coupling_where_all_fits_as_it_is(self):
        truth = pairs(30, coupling=DEFAULT_COUPLING, seed=3)
        fitted = fit_calibration(counts_only(truth))
        if fitted.is_identity:
            assert fitted.coupling == DEFAULT_COUPLING
        assert abs(fitted.coupling - DEFAULT_COUPLING) < 3

    def test_touching_peaks_take_part(self):
        truth = pairs(120, coupling=2.0, offset=-1.0, peaks=True)
        assert fit_calibration(truth).ripple == 0.02


NUMBERS = Numbers(0.8, -0.4, 0.5, 0.2, 0.3, 1.5, 0.7)


@pytest.mark.parametrize("counted", ["new", "persisting"])
@pytest.mark.parametrize("coupling", [0.0, 0.4, 1.0, 2.5])
@pytest.mark.parametrize("peaks", [False, True])
class TestLikelihoods:
    def truth(self, counted, coupling, peaks):
        return replace(pairs(30, coupling=2.0, counted=counted, peaks=peaks), coupling=coupling)

    def test_derivatives_are_those_of_the_values(self, counted, coupling, peaks):
        truth = self.truth(counted, coupling, peaks)
        # A candidate that is no change at all has no probability to be one: no lesion is known to be.
        may_be = [table.existence(counted, coupling) > 1e-3 for table in truth.candidates]
        known = replace(truth, owns=[o & m for o, m in zip(truth.owns, may_be, strict=True)])
        for likelihood in (CountLikelihood(truth), LesionLikelihood(known)):
            numeric = []
            for step in 1e-6 * np.eye(len(NUMBERS.vector)):
                up, down = (likelihood(Numbers.of_vector(NUMBERS.vector + sign * step), 9)[0] for sign in (1, -1))
                numeric.append((up - down) / 2e-6)
            found, expected = likelihood(NUMBERS, 9)[1], np.transpose(numeric)
            # Where the higher of two changes places within the step, there is no derivative.
            smooth = np.isclose(found, expected, rtol=1e-4, atol=1e-6)
            assert smooth.mean() > 0.97

    def test_of_counts_it_is_that_of_the_distribution(self, counted, coupling, peaks):
        truth = self.truth(counted, coupling, peaks)
        values, _ = CountLikelihood(truth)(NUMBERS, 9)
        typical = float(np.expm1(truth.log_crowds.mean()))
        calibration = lc.Calibration(0.8, -0.4, 0.2, 0.3, 1.5, 0.5, 0.7, typical, coupling=coupling, counted=counted)
        for value, table, count in zip(values, truth.candidates, truth.counts, strict=True):
            beyond = 1 / (2 * max(len(table), count) + 10)
            distribution = calibration.distribution(table)
            assert value == pytest.approx(np.log(0.95 * distribution.pmf(int(count)) + 0.05 * beyond), rel=1e-6)


@given(
    st.floats(0.05, 0.95), st.floats(0, 1), st.floats(0.05, 0.95), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.3, 3)
)
def test_heights_with_derivatives_have_the_values_of_those_without(peak, share, other, coupling, slope):
    heights = [np.log(p / (1 - p)) for p in (peak, max(share * peak, 1e-3), other)]
    with_derivatives = [Height.of(np.array([[one]]), slope, np.array([[0.3]])) for one in heights]
    plain = [one.value for one in with_derivatives]
    found = only_now_with_derivatives(*with_derivatives, coupling)
    np.testing.assert_allclose(found.value, only_now(*plain, coupling), atol=1e-12)


class TestWhatACalibrationOfChangesDoes:
    def test_as_it_is_it_gives_what_the_maps_say(self):
        truth = pairs(20, coupling=2.0, peaks=True)
        for counted in ("new", "persisting"):
            calibration = lc.Calibration(counted=counted, coupling=1.7)
            for table in truth.candidates:
                np.testing.assert_allclose(calibration.existence(table), table.existence(counted, 1.7), atol=1e-12)

    def test_new_and_persisting_add_up(self):
        numbers = {"slope": 0.7, "offset": -0.3, "coupling": 3.0}
        for table in pairs(20, coupling=2.0, peaks=True).candidates:
            new, stay = (lc.Calibration(**numbers, counted=kind).existence(table) for kind in ("new", "persisting"))
            now = CandidateTable.of(table.peak, saddle=table.saddle)
            whole = lc.Calibration(slope=0.7, offset=-0.3).existence(now)
            np.testing.assert_allclose(new + stay, whole, atol=1e-12)

    def test_more_coupling_makes_fewer(self):
        table = CandidateTable.of([0.9, 0.6, 0.4], other=[0.3, 0.5, 0.1])
        means = [lc.Calibration(0.8, coupling=c, counted="new").distribution(table).mean() for c in (0, 0.5, 1, 2, 5)]
        assert means == sorted(means, reverse=True)

    def test_a_candidate_that_rises_less_than_its_saddle_has_nothing_of_its_own(self):
        table = CandidateTable.of([0.9], saddle=[0.5], other=[0.0], risen=[0.3])
        assert table.existence("new", 1.0) == 0
        assert lc.Calibration(0.7, counted="new").existence(table) == 0

    def test_printed_it_has_its_coupling(self):
        assert "coupling 3" in str(lc.Calibration(0.7, counted="new", coupling=3))
        assert "coupling" not in str(lc.Calibration(0.7))

    @pytest.mark.parametrize("coupling", [-1, 10.5, float("nan"), "much"])
    def test_a_coupling_out_of_range_is_refused(self, coupling):
        with pytest.raises(CalibrationError, match="coupling to be from 0 to 10"):
            lc.Calibration(coupling=coupling, counted="new")

    @pytest.mark.parametrize("counted", ["dogs", None, ["new"]])
    def test_what_cannot_be_counted_is_refused(self, counted):
        with pytest.raises(CalibrationError, match="counted to be one of lesions, new, gone, persisting"):
            lc.Calibration(counted=counted)

    def test_another_count_than_it_was_fitted_for_is_refused(self):
        protocol = CountingProtocol()
        lc.Calibration(counted="gone").check(protocol, "gone")
        with pytest.raises(CalibrationError, match=r"number of new lesions.*lesioncount compare"):
            lc.Calibration(counted="new").check(protocol)
        with pytest.raises(CalibrationError, match="number of lesions, and does not correct that of gone lesions"):
            lc.Calibration().check(protocol, "gone")


class TestFiles:
    def test_what_is_saved_is_what_is_loaded(self, tmp_path):
        fit = CalibrationFit.fit(pairs(60, coupling=1.0, offset=-1.0), protocol=CountingProtocol(0.2))
        fit.save(tmp_path / "c.json")
        again = CalibrationFit.load(tmp_path / "c.json")
        assert again.to_json() == fit.to_json()
        assert again.calibration == fit.calibration
        assert again.fingerprint == fit.fingerprint
        one = pairs(60, coupling=1.0, offset=-1.0).candidates[0]
        assert again.conformal.interval(one, 0.9) == fit.conformal.interval(one, 0.9)

    def test_the_fingerprint_knows_what_is_counted_and_the_coupling(self):
        fits = [
            CalibrationFit(lc.Calibration(0.7)),
            CalibrationFit(lc.Calibration(0.7, counted="new")),
            CalibrationFit(lc.Calibration(0.7, counted="gone")),
            CalibrationFit(lc.Calibration(0.7, counted="new", coupling=3.0)),
        ]
        assert len({fit.fingerprint for fit in fits}) == 4

    def test_files_from_before_there_were_changes_keep_their_fingerprint(self):
        """They have neither field, and this fingerprint."""
        fields = {
            "slope": 0.7, "offset": -0.2, "extra_rate": 0.1, "extra_share": 0.0, "extra_shape": None, "spread": 0.3,
            "crowding": 0.0, "typical_count": 0.0, "ripple": 0.0, "protocol": None, "origin": "the counts of 40 scans",
        }  # fmt: skip
        text = json.dumps({"format": 2, "fingerprint": "bfc588e372dc", "calibration": fields})
        fit = CalibrationFit.from_json(text)
        assert fit.calibration == lc.Calibration(0.7, -0.2, 0.1, spread=0.3, origin="the counts of 40 scans")
        assert fit.calibration.to_dict() == fields
        assert fit.fingerprint == "bfc588e372dc"


@pytest.mark.parametrize(
    ("columns", "counted", "message"),
    [
        ({"other": [0.5]}, "lesions", "Changes, and only they"),
        ({}, "new", "Changes, and only they"),
        ({"other": [0.5]}, "dogs", "counted to be one of"),
    ],
)
def test_truth_that_does_not_fit_is_refused(columns, counted, message):
    with pytest.raises(CalibrationError, match=message):
        KnownTruth.of([CandidateTable.of([0.5], **columns)], [1], counted=counted)


def test_what_is_proven_of_changes_is_proven_of_pairs():
    intervals = ConformalFit(lc.Calibration(counted="new"), lc.ConformalCounts("interval", ((0.1,) * 40,)))
    assert intervals.promise(0.9).startswith("Proven for new pairs like these")


def test_some_of_the_pairs_keep_all_that_is_known_of_them():
    truth = pairs(20, coupling=2.0, peaks=True)
    some = truth[[3, 7]]
    assert (some.counted, some.coupling, len(some)) == ("new", truth.coupling, 2)
    assert some.candidates == (truth.candidates[3], truth.candidates[7])
    plain = truth.without_ripples(0.2)
    assert sum(map(len, plain.candidates)) < sum(map(len, truth.candidates))
    for table, owns in zip(plain.candidates, plain.owns, strict=True):
        assert {len(column) for column in table.values} == {len(table)} == {len(owns)}
        assert table.stands_out(0.2).all()
