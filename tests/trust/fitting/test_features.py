"""Calibrations that learn from features of candidates, beside their probabilities."""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting import CalibrationFit, KnownTruth, fit_calibration
from lesioncount.trust.fitting.candidates_of_scans import Numbers
from lesioncount.trust.fitting.likelihood import CountLikelihood, LesionLikelihood

BY_VOLUME = lc.Calibration(0.8, -0.3, weights={"volume": 0.5}, typical_features={"volume": math.log(20.0)})


@cache
def cohort(n, *, weights, features=("volume",), counted="lesions", candidates=6.0, seed=0):
    """Scans whose candidates are real with the probability that this calibration gives them."""
    rng = np.random.default_rng(seed)
    truth = lc.Calibration(
        offset=-0.5, counted=counted, weights=dict(weights), typical_features={"volume": 3.0, "score": 50.0}
    )
    tables = []
    for k in rng.poisson(candidates, n):
        columns = {"volume": rng.lognormal(3.0, 1.0, k), "score": rng.normal(50.0, 10.0, k), "same": np.full(k, 0.1)}
        if counted != "lesions":
            columns["other"] = rng.random(k) * 0.3
        tables.append(lc.CandidateTable.of(rng.uniform(0.1, 1, k), **columns))
    owns = [rng.random(len(table)) < truth.existence(table) for table in tables]
    return KnownTruth.of(tables, [o.sum() for o in owns], owns=owns, counted=counted, features=features)


BOTH = (("volume", 1.0), ("score", -0.08))


class TestWhatACalibrationDoes:
    def test_a_feature_shifts_the_logit(self):
        table = lc.CandidateTable.of([0.6, 0.6, 0.6], volume=[20.0, 20.0 * math.e, 20.0 / math.e])
        shifts = -0.3 + np.array([0.0, 0.5, -0.5])
        expected = 1 / (1 + np.exp(-(0.8 * math.log(1.5) + shifts)))
        np.testing.assert_allclose(BY_VOLUME.existence(table), expected)
        assert BY_VOLUME.distribution(table).mean() == pytest.approx(expected.sum())

    def test_typical_candidates_need_no_feature(self):
        typical = lc.CandidateTable.of([0.3, 0.9], volume=[20.0, 20.0])
        plain = BY_VOLUME.of_typical_candidates
        np.testing.assert_allclose(plain.existence([0.3, 0.9]), BY_VOLUME.existence(typical))
        assert BY_VOLUME.inverse(0.5) == plain.inverse(0.5)

    @given(st.floats(-3, 3), st.floats(1, 1e4), st.floats(0.2, 3))
    def test_a_higher_peak_stays_more_probable_and_a_saddle_never_takes_more_than_all(self, weight, volume, slope):
        calibration = lc.Calibration(slope, weights={"volume": weight}, typical_features={"volume": 4.0})
        peaks = np.linspace(0.05, 1, 12)
        alone = calibration.existence(lc.CandidateTable.of(peaks, volume=[volume] * 12))
        touching = calibration.existence(lc.CandidateTable.of(peaks, saddle=peaks / 2, volume=[volume] * 12))
        assert (np.diff(alone) >= 0).all()
        assert ((touching >= 0) & (touching <= alone)).all()

    def test_new_and_persisting_still_add_up(self):
        columns = {"saddle": [0.2, 0.0], "volume": [3.0, 400.0]}
        changing = lc.CandidateTable.of([0.9, 0.4], other=[0.3, 0.1], **columns)
        new, stay = (replace(BY_VOLUME, counted=kind).existence(changing) for kind in ("new", "persisting"))
        np.testing.assert_allclose(new + stay, BY_VOLUME.existence(lc.CandidateTable.of([0.9, 0.4], **columns)))

    def test_candidates_of_a_map_bring_their_features(self):
        found = lc.find_candidates(np.array([[0.8, 0.7, 0.0, 0.6]]), spacing_mm=(2.0, 2.0), warn=False)
        table = lc.CandidateTable.of([0.8, 0.6], volume=[8.0, 4.0])
        np.testing.assert_allclose(BY_VOLUME.existence(found), BY_VOLUME.existence(table))

    def test_the_column_that_is_missing_is_named(self):
        with pytest.raises(CalibrationError, match="no column 'volume'"):
            BY_VOLUME.distribution([0.5, 0.6])
        with pytest.raises(CalibrationError, match="no column 'score'"):
            KnownTruth.of([lc.CandidateTable.of([0.5], volume=[1])], [1], features=("volume", "score"))

    @pytest.mark.parametrize("volume", [0.0, -1.0, float("nan"), float("inf")])
    def test_a_feature_that_is_unknown_is_said_to_be(self, volume):
        with pytest.raises(CalibrationError, match="the volume of each candidate, which is unknown for 1 of 2"):
            BY_VOLUME.existence(lc.CandidateTable.of([0.5, 0.6], volume=[volume, 3.0]))

    def test_a_map_without_voxel_size_has_no_volumes(self):
        with pytest.raises(CalibrationError, match="where a map has no voxel size"):
            BY_VOLUME.distribution(lc.find_candidates(np.array([[0.8, 0.7, 0.0, 0.6]]), warn=False))

    def test_features_that_maps_do_not_have_are_refused_before_anything_is_counted(self):
        BY_VOLUME.check(lc.CountingProtocol())
        with pytest.raises(CalibrationError, match=r"needs the score of each candidate.*Known are volume"):
            lc.Calibration(weights={"score": 1.0}).check(lc.CountingProtocol())

    def test_words_name_it(self):
        assert "volume +0.5" in str(BY_VOLUME)
        assert not lc.Calibration(weights={"volume": 0.1}).is_identity
        assert lc.Calibration(weights={"volume": 0.0}).is_identity

    @pytest.mark.parametrize("field", ["weights", "typical_features"])
    @pytest.mark.parametrize("values", [None, 0.5, {"volume": "large"}, {"volume": math.nan}, {1: 0.5}, {"v": 10**400}])
    def test_what_is_no_number_for_each_feature_is_refused(self, field, values):
        with pytest.raises(CalibrationError, match=f"Expected {field} to be a number for each feature"):
            lc.Calibration.from_dict({field: values})


class TestFiles:
    def test_weights_survive_a_round_trip_and_change_the_fingerprint(self):
        plain = json.loads(json.dumps(BY_VOLUME.to_dict(), allow_nan=False))
        assert lc.Calibration.from_dict(plain) == BY_VOLUME
        assert CalibrationFit(BY_VOLUME).fingerprint != CalibrationFit(BY_VOLUME.of_typical_candidates).fingerprint
        assert CalibrationFit(BY_VOLUME).features == ("volume",)

    def test_without_features_nothing_is_written_of_them(self):
        assert not {"weights", "typical_features"} & set(lc.Calibration(0.7).to_dict())


class TestFits:
    @pytest.mark.parametrize("known", ["lesions", "counts"])
    def test_find_the_weights_that_were_put_in(self, known):
        truth = cohort(600, weights=BOTH, features=("volume", "score"))
        fitted = fit_calibration(truth if known == "lesions" else replace(truth, owns=None))
        assert fitted.weights["volume"] == pytest.approx(1.0, abs=0.2)
        assert fitted.weights["score"] == pytest.approx(-0.08, abs=0.02)
        assert fitted.typical_features["volume"] == pytest.approx(3.0, abs=0.1)
        assert fitted.typical_features["score"] == pytest.approx(50.0, abs=1.0)
        assert fitted.offset == pytest.approx(-0.5, abs=0.25)

    def test_find_the_weight_of_changes(self):
        truth = replace(cohort(300, weights=(("volume", 1.0),), counted="new"), owns=None)
        assert fit_calibration(truth).weights["volume"] == pytest.approx(1.0, abs=0.4)

    def test_find_no_weight_where_there_is_none(self):
        fitted = fit_calibration(cohort(600, weights=(), features=("volume", "same")))
        assert abs(fitted.weights["volume"]) < 0.15
        assert fitted.weights["same"] == 0

    def test_make_held_out_counts_better_than_probabilities_alone(self):
        truth = replace(cohort(200, weights=(("volume", 1.5),), candidates=10.0), owns=None)
        with_volume, without = (CalibrationFit.fit(one) for one in (truth, replace(truth, features=())))
        assert with_volume.held_out.after["rps"].value < 0.9 * without.held_out.after["rps"].value
        again = CalibrationFit.from_json(with_volume.to_json())
        assert again.fingerprint == with_volume.fingerprint
        table = truth.candidates[0]
        assert again.conformal.interval(table, 0.9) == with_volume.conformal.interval(table, 0.9)

    def test_begin_where_a_fit_of_nearly_the_same_scans_ended(self):
        truth = cohort(200, weights=BOTH, features=("volume", "score"))
        alone = fit_calibration(truth)
        near = fit_calibration(truth, near=fit_calibration(truth[range(150)]))
        assert near.weights == pytest.approx(alone.weights, abs=0.02)
        assert near.offset == pytest.approx(alone.offset, abs=0.05)

    def test_scans_without_candidates_take_part(self):
        truth = KnownTruth.of(
            [lc.CandidateTable.of([], volume=[])] * 30 + [lc.CandidateTable.of([0.9], volume=[3.0])] * 30,
            [0] * 30 + [1] * 30,
            features=("volume",),
        )
        assert fit_calibration(truth).existence(lc.CandidateTable.of([0.9], volume=[3.0]))[0] > 0.8


NUMBERS = Numbers(0.8, -0.4, 0.5, 0.2, 0.3, 1.5, 0.7, (0.6, -0.3))


@pytest.mark.parametrize("counted", ["lesions", "new"])
class TestLikelihoods:
    def truth(self, counted):
        return cohort(40, weights=BOTH, features=("volume", "score"), counted=counted)

    def test_derivatives_are_those_of_the_values(self, counted):
        truth = self.truth(counted)
        may_be = [table.existence(counted, truth.coupling) > 1e-3 for table in truth.candidates]
        known = replace(truth, owns=tuple(o & m for o, m in zip(truth.owns, may_be, strict=True)))
        for likelihood in (CountLikelihood(truth), LesionLikelihood(known)):
            numeric = []
            for step in 1e-6 * np.eye(9):
                up, down = (likelihood(Numbers.of_vector(NUMBERS.vector + sign * step), 9)[0] for sign in (1, -1))
                numeric.append((up - down) / 2e-6)
            np.testing.assert_allclose(likelihood(NUMBERS, 9)[1], np.transpose(numeric), rtol=1e-4, atol=1e-6)

    def test_of_counts_it_is_that_of_the_distribution(self, counted):
        truth = self.truth(counted)
        values, _ = CountLikelihood(truth)(NUMBERS, 9)
        means, widths = truth.usual_features
        calibration = lc.Calibration(
            0.8, -0.4, 0.2, 0.3, 1.5, 0.5, 0.7, float(np.expm1(truth.log_crowds.mean())), counted=counted,
            weights=dict(zip(truth.features, np.array([0.6, -0.3]) / widths, strict=True)),
            typical_features=dict(zip(truth.features, means, strict=True)),
        )  # fmt: skip
        for value, table, count in zip(values, truth.candidates, truth.counts, strict=True):
            beyond = 1 / (2 * max(len(table), count) + 10)
            expected = np.log(0.95 * calibration.distribution(table).pmf(int(count)) + 0.05 * beyond)
            assert value == pytest.approx(expected, rel=1e-6)
