"""Counts by region and answers of runs: paired, recorded, read back."""

import json

import nibabel
import numpy as np
import pytest
from nifti_files import save

import lesioncount as lc
from lesioncount.errors import MapFileError, QuestionError, RegionError
from lesioncount.files import masks
from lesioncount.folder.plain import decoded
from lesioncount.questions import Question
from lesioncount.results.count_warnings import UNNAMED
from lesioncount.results.record import Record
from lesioncount.results.region_numbers import RegionalNumbers
from lesioncount.results.region_settings import RegionSettings
from lesioncount.results.scan_numbers import CountNumbers
from lesioncount.runs import Settings, count_batch, count_file, count_files, read_results
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit

SHAPE = (8, 9, 10)
NAMES = {1: "left", 2: "right", 3: "ventricles"}
WITHIN = "near = ventricles <= 3mm"
ASKED = tuple(map(Question.asked, ("left >= 1 and near >= 1", "mcdonald2017-dis", "count >= 2")))
CALIBRATION = Calibration(slope=0.8, offset=-0.3, spread=0.8, extra_rate=0.3, extra_share=0.2, extra_shape=2.0)


def speckles(rng):
    """A map with some forty candidates."""
    return (rng.random(SHAPE) * (rng.random(SHAPE) < 0.08)).astype(np.float32)


@pytest.fixture
def atlas():
    labels = np.zeros(SHAPE, dtype=np.uint8)
    labels[:4, 1:], labels[4:, 1:], labels[3:5, 4:6, 4:6] = 1, 2, 3
    return labels


@pytest.fixture
def maps(tmp_path, rng, atlas):
    for member in ("a", "b"):
        for i in range(3):
            save(tmp_path / member / f"s{i}.nii.gz", speckles(rng))
    save(tmp_path / "atlas.nii.gz", atlas)
    return tmp_path


def settings(**others):
    names = {1: "juxtacortical", 2: "infratentorial", 3: "ventricles"}
    return Settings(regions=RegionSettings.of(names, ["periventricular = ventricles <= 3mm", WITHIN]), **others)


@pytest.mark.parametrize("protocol", ["paper", "peaks"])
def test_a_run_counts_in_regions_as_the_call_on_arrays_does(maps, atlas, protocol):
    how = Settings(lc.CountingProtocol.named(protocol), regions=RegionSettings.of(NAMES, WITHIN))
    results = count_batch([maps / "a"], maps / "out", settings=how, regions=maps / "atlas.nii.gz")
    assert not results.failed
    for scan in results.scans:
        image = nibabel.load(maps / "a" / f"{scan.name}.nii.gz")
        expected = lc.count_lesions(image, protocol=protocol, regions=atlas, region_names=NAMES, within=WITHIN)
        assert [region.region for region in scan.regions] == ["left", "right", "ventricles", "outside", "near"]
        record = results.record(scan.name)
        for region, numbers in zip(record.regions, scan.regions, strict=True):
            assert region.numbers == numbers
            distribution = expected.regions[numbers.region]
            assert list(region.pmf) == distribution.pmf().tolist()
            assert numbers.n_candidates == len(distribution.probabilities)
            assert numbers.best.count_mean == pytest.approx(distribution.mean())
        assert sum(one.raw.count_mean for one in scan.regions[:4]) == pytest.approx(scan.counted.raw.count_mean)
        assert [row.region for row in record.lesions] == expected.places.region_names
        assert [row.within for row in record.lesions] == expected.places.columns()["within"]


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("members", [False, True])
def test_what_is_read_back_is_what_was_counted(maps, members, calibrated):
    how = settings(calibration=CalibrationFit(CALIBRATION) if calibrated else None, questions=ASKED[1:])
    inputs = [maps / "a", maps / "b"] if members else [maps / "a"]
    results = count_batch(inputs, maps / "out", settings=how, members=members, regions=maps / "atlas.nii.gz")
    again = read_results(maps / "out")
    assert again.run.settings == results.run.settings == how.recorded
    for before, after in zip(results.scans, again.scans, strict=True):
        assert before.regions == after.regions
        assert len(before.regions) == 6
        assert before.answers == after.answers
        assert all((answer.probability_calibrated is not None) is calibrated for answer in after.answers)
        record, written = again.record(before.name), json.loads((maps / "out" / f"{before.name}.json").read_text())
        assert json.loads(record.to_json()) | {"checksum": written["checksum"]} == written
        total = sum(region.best.count_mean for region in after.regions[:4])
        assert total == pytest.approx(after.counted.best.count_mean, rel=1e-9)
    frame = again.regions_to_dataframe()
    assert len(frame) == 18
    assert ("p_1plus_calibrated" in frame) is calibrated
    np.testing.assert_allclose(frame["p_1plus"], [1 - one.pmf[0] for r in again.records() for one in r.regions])


def test_members_are_mixed_and_their_answers_averaged(maps):
    both = count_batch(
        [maps / "a", maps / "b"], maps / "out", settings=settings(questions=ASKED[1:]), members=True,
        regions=maps / "atlas.nii.gz",
    )  # fmt: skip
    single = [
        count_batch([maps / one], maps / f"out-{one}", settings=settings(questions=ASKED[1:]),
                    regions=maps / "atlas.nii.gz")
        for one in "ab"
    ]  # fmt: skip
    for scan in both.scans:
        of_members = [next(one for one in results.scans if one.name == scan.name) for results in single]
        for place, region in enumerate(scan.regions):
            means = [one.regions[place].raw.count_mean for one in of_members]
            assert region.raw.count_mean == pytest.approx(np.mean(means))
        for place, answer in enumerate(scan.answers):
            assert answer.probability == pytest.approx(np.mean([one.answers[place].probability for one in of_members]))


def test_answers_say_what_was_missing(maps):
    results = count_batch(
        [maps / "a"], maps / "out", settings=settings(questions=ASKED[1:]), regions=maps / "atlas.nii.gz"
    )
    for scan in results.scans:
        assert scan.answers[0].name == "mcdonald2017-dis"
        assert scan.answers[0].missing == ("spinal_cord",)
        assert scan.answers[1].missing == ()
        assert scan.answers[1].probability == pytest.approx(1 - scan.counted.raw.p_0 - scan.counted.raw.p_1)


def test_records_without_regions_are_still_read(maps):
    count_batch([maps / "a"], maps / "out")
    content = json.loads((maps / "out" / "s0.json").read_text())
    assert "regions" not in content
    assert "answers" not in content
    assert "regions" not in content["settings"]
    assert read_results(maps / "out").scans[0].regions == ()
    assert list(read_results(maps / "out").regions_to_dataframe().columns)[:2] == ["scan", "region"]
    assert not (maps / "out" / "regions.tsv").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"pmf": []},
        {"p_1plus": "often"},
        {"pmf_calibrated": [1.0]},
        {"count_mode_calibrated": 1},
        {"region": 3},
    ],
)
def test_records_whose_regions_are_none_are_not_records(maps, wrong):
    count_batch([maps / "a"], maps / "out", settings=settings(), regions=maps / "atlas.nii.gz")
    content = json.loads((maps / "out" / "s0.json").read_text())
    decoded(json.dumps(content), Record, is_ours=False).checked()
    content["regions"][0] |= wrong
    with pytest.raises(ValueError, match=r"."):
        decoded(json.dumps(content), Record, is_ours=False).checked()


def test_records_whose_distances_are_none_are_not_records(maps):
    count_batch([maps / "a"], maps / "out", settings=settings(), regions=maps / "atlas.nii.gz")
    content = json.loads((maps / "out" / "s0.json").read_text())
    content["settings"]["regions"]["within"] = ["nowhere"]
    with pytest.raises(ValueError, match="Expected a distance to regions"):
        decoded(json.dumps(content), Record, is_ours=False).checked()


def test_records_whose_answers_are_no_probabilities_are_not_records(maps):
    count_batch([maps / "a"], maps / "out", settings=Settings(questions=ASKED[2:]))
    content = json.loads((maps / "out" / "s0.json").read_text())
    content["answers"][0]["probability"] = 1.5
    with pytest.raises(ValueError, match="answers to be probabilities"):
        decoded(json.dumps(content), Record, is_ours=False).checked()


def test_a_run_goes_on_only_where_regions_and_questions_are_the_same(maps, atlas):
    def run(how, atlas_file="atlas.nii.gz", **mode):
        counted = []
        count_batch([maps / "a"], maps / "out", settings=how, regions=maps / atlas_file, **(mode or {"resume": True}),
                    show=lambda *about: counted.append(about[1].name))  # fmt: skip
        return len(counted)

    assert run(settings()) == 3
    assert run(settings()) == 0
    save(maps / "copy.nii.gz", atlas)
    assert run(settings(), "copy.nii.gz") == 0
    save(maps / "other.nii.gz", atlas[::-1])
    assert run(settings(), "other.nii.gz") == 3
    for how in (
        settings(questions=ASKED[2:]),
        Settings(regions=RegionSettings.of(NAMES)),
        Settings(regions=RegionSettings.of({**NAMES, 3: "csf"})),
    ):
        with pytest.raises(MapFileError, match=r"was made with other settings: .*(questions|regions) is"):
            run(how, "other.nii.gz")
        assert run(how, "other.nii.gz", overwrite=True) == 3
    count_batch([maps / "a"], maps / "out", overwrite=True)
    assert not (maps / "out" / "regions.tsv").exists()
    assert not (maps / "out" / "answers.tsv").exists()


def test_the_atlas_of_a_cohort_is_read_once(maps, monkeypatch):
    opened = []
    open_mask = masks.open_mask
    monkeypatch.setattr(masks, "open_mask", lambda path: opened.append(path) or open_mask(path))
    count_batch([maps / "a"], maps / "out", settings=settings(), regions=maps / "atlas.nii.gz")
    assert len(opened) == 1


def test_each_scan_or_patient_may_have_an_atlas_of_its_own(tmp_path, rng):
    for sub in ("01", "02"):
        for ses in ("1", "2"):
            name = f"sub-{sub}_ses-{ses}"
            save(tmp_path / "maps" / f"{name}_probseg.nii.gz", speckles(rng))
            save(tmp_path / "visits" / f"{name}_dseg.nii.gz", np.full(SHAPE, int(sub + ses), np.uint8))
        save(tmp_path / "patients" / f"sub-{sub}_dseg.nii.gz", np.full(SHAPE, int(sub), np.uint8))

    def regions(where, **selection):
        results = count_batch(
            [tmp_path / "maps"], tmp_path / "out", regions=where, overwrite=True,
            selection=lc.runs.Selection(**selection),
        )  # fmt: skip
        assert not results.failed
        return [[one.region for one in scan.regions if one.n_candidates] for scan in results.scans]

    visits, patients = [["11"], ["12"], ["21"], ["22"]], [["1"], ["1"], ["2"], ["2"]]
    assert regions(tmp_path / "visits") == visits
    assert regions(tmp_path / "visits", regions_suffix="_dseg") == visits
    assert regions(tmp_path / "visits" / "{participant}_{session}_dseg.nii.gz") == visits
    assert regions(tmp_path / "patients") == patients
    assert regions(tmp_path / "patients" / "{participant}_dseg.nii.gz") == patients
    save(tmp_path / "patients" / "sub-01_ses-2_dseg.nii.gz", np.full(SHAPE, 9, np.uint8))
    assert regions(tmp_path / "patients") == [["1"], ["9"], ["2"], ["2"]], "that of the visit comes first"


def test_a_scan_without_its_atlas_fails_and_the_others_are_counted(maps, atlas):
    for i in (0, 2):
        save(maps / "regions" / f"s{i}.nii.gz", atlas)
    results = count_batch([maps / "a"], maps / "out", regions=maps / "regions")
    assert [scan.name for scan in results.counted] == ["s0", "s2"]
    assert "There is no atlas of this scan in" in results.failed[0].error
    with pytest.raises(MapFileError, match=r"The atlas .*none.nii.gz does not exist"):
        count_batch([maps / "a"], maps / "out", regions=maps / "none.nii.gz", overwrite=True)
    (maps / "empty").mkdir()
    with pytest.raises(MapFileError, match=r"no atlas of any scan .* such as --regions '"):
        count_batch([maps / "a"], maps / "out", regions=maps / "empty", overwrite=True)


def test_an_atlas_of_one_patient_is_not_that_of_another(tmp_path):
    for sub in ("01", "02"):
        save(tmp_path / "maps" / f"sub-{sub}_ses-1_probseg.nii.gz", np.zeros(SHAPE, np.float32))
    save(tmp_path / "regions" / "sub-01_dseg.nii.gz", np.zeros(SHAPE, np.uint8))
    results = count_batch([tmp_path / "maps"], tmp_path / "out", regions=tmp_path / "regions")
    assert [scan.is_ok for scan in results.scans] == [True, False]


def test_an_atlas_on_another_grid_fails_its_scan(maps):
    save(maps / "small.nii.gz", np.zeros((3, 3, 3), np.uint8))
    results = count_batch([maps / "a"], maps / "out", regions=maps / "small.nii.gz")
    assert len(results.failed) == 3
    assert "Expected the label map of regions on the grid of the map" in results.failed[0].error


def test_labels_that_the_table_does_not_name_are_told(maps):
    how = Settings(regions=RegionSettings.of({1: "left"}, "x = 3 <= 3mm"))
    results = count_batch([maps / "a"], maps / "out", settings=how, regions=maps / "atlas.nii.gz")
    for scan in results.scans:
        assert [one.region for one in scan.regions] == ["left", "2", "3", "outside", "x"]
    assert len(results.warnings[UNNAMED]) == 3
    assert any(warning.endswith("In this map: 2, 3.") for warning in results.scans[0].warnings)


def test_what_does_not_fit_together_is_said_before_anything_is_counted(maps):
    with pytest.raises(RegionError, match=r"need a label map of the regions \(--regions"):
        count_batch([maps / "a"], maps / "out", settings=settings())
    with pytest.raises(RegionError, match="no region 'ventrikel'"):
        RegionSettings.of(NAMES, "ventrikel <= 3mm")
    with pytest.raises(QuestionError, match="asks for left, near"):
        count_batch([maps / "a"], maps / "out", settings=Settings(questions=ASKED[:1]))
    with pytest.raises(QuestionError, match="asks for nearby"):
        count_batch(
            [maps / "a"], maps / "out", regions=maps / "atlas.nii.gz",
            settings=settings(questions=(Question.parse("nearby >= 1"),)),
        )  # fmt: skip
    assert not (maps / "out").exists()


def test_questions_about_labels_without_names_are_known_once_the_atlas_is_read(maps):
    results = count_batch(
        [maps / "a"], maps / "out", regions=maps / "atlas.nii.gz",
        settings=Settings(questions=(Question.parse('"3" >= 1'),)),
    )  # fmt: skip
    for scan in results.scans:
        assert scan.answers[0].probability == pytest.approx(scan.regions[2].raw.p_1plus)
    results = count_batch(
        [maps / "a"], maps / "out", regions=maps / "atlas.nii.gz", overwrite=True,
        settings=Settings(questions=(Question.parse('"4" >= 1'),)),
    )  # fmt: skip
    assert 'asks for "4"' in results.failed[0].error


def test_one_file_has_regions_and_answers(maps):
    (maps / "names.csv").write_text("index,name\n1,left\n2,right\n3,ventricles\n")
    path = maps / "a" / "s0.nii.gz"
    by_table = count_file(path, regions=maps / "atlas.nii.gz", region_names=maps / "names.csv", within=WITHIN).result
    by_names = count_file(path, regions=str(maps / "atlas.nii.gz"), region_names=NAMES, within=WITHIN).result
    assert dict(by_table.regions) == dict(by_names.regions)
    assert by_table.ask("left >= 1") == pytest.approx(float(by_table.regions["left"].sf(0)))
    with pytest.raises(RegionError, match="need a label map"):
        count_file(path, within=WITHIN)


def test_many_files_have_regions(maps):
    table = count_files(
        maps / "a", regions=maps / "atlas.nii.gz", region_names=NAMES, within=WITHIN,
        calibration=CalibrationFit(CALIBRATION),
    )  # fmt: skip
    assert len(table.regions_to_dataframe()) == 15
    total = sum(table[0].regions[name].mean() for name in ("left", "right", "ventricles", "outside"))
    assert total == pytest.approx(table[0].distribution.mean())
    with pytest.raises(KeyError, match="There are near, left, right"):
        table[0].regions["nowhere"]
    assert count_files(maps / "a")[0].regions == {}


def test_maps_without_a_voxel_size_have_regions_but_no_distances(tmp_path, rng):
    np.save(tmp_path / "map.npy", rng.random((20, 20)).astype(np.float32) ** 4 * 0.7)
    np.save(tmp_path / "labels.npy", np.arange(400).reshape(20, 20) // 200 + 1)
    results = count_batch([tmp_path / "map.npy"], tmp_path / "out", regions=tmp_path / "labels.npy")
    assert [one.region for one in results.scans[0].regions] == ["1", "2", "outside"]
    how = Settings(regions=RegionSettings.of(None, "1 <= 3mm"))
    failed = count_batch(
        [tmp_path / "map.npy"], tmp_path / "out", regions=tmp_path / "labels.npy", settings=how, overwrite=True
    ).failed
    assert "needs the voxel size" in failed[0].error


@pytest.mark.parametrize("n", [0, 1, 4, 50])
def test_numbers_of_regions_are_those_of_their_distributions(rng, n):
    for p in (rng.random(n), rng.random(n) * 0.02, np.ones(n), rng.random(n).round()):
        distribution = lc.PoissonBinomial(p)
        mine, whole = RegionalNumbers.of(distribution), CountNumbers.of(distribution)
        for name in ("count_mode", "count_median", "interval90_low", "interval90_high", "count_mean", "count_sd"):
            assert getattr(mine, name) == getattr(whole, name), name
        assert mine.p_1plus == pytest.approx(float(distribution.sf(0)))


def test_bids_tables_have_the_regions(tmp_path, rng, atlas):
    save(tmp_path / "sub-01_probseg.nii.gz", speckles(rng))
    save(tmp_path / "atlas.nii.gz", atlas)
    results = count_batch(
        [tmp_path / "sub-01_probseg.nii.gz"], tmp_path / "out", regions=tmp_path / "atlas.nii.gz",
        settings=Settings(bids=True, regions=RegionSettings.of(NAMES, WITHIN)),
    )  # fmt: skip
    assert not results.failed
    table = next((tmp_path / "out").rglob("*_dseg.tsv")).read_text()
    assert table.splitlines()[0].split("\t")[-3:] == ["region", "within", "within_mm"]
