"""Results as DICOM: a segmentation of the candidates, and a report of the count."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("highdicom")

import highdicom
from dicom_files import affine_of, ct_series, errors_of, lesion, save_segmentation, save_series
from nifti_files import save
from pydicom import dcmread

from lesioncount.assess.beside_truth import TruthOptions, compare
from lesioncount.assess.truth import true_lesions
from lesioncount.cli import main
from lesioncount.errors import MapFileError
from lesioncount.files import open_map, open_mask
from lesioncount.files.dicom_series import read_series
from lesioncount.files.lattice import place
from lesioncount.protocol import CountingProtocol
from lesioncount.runs import DicomOutput, Settings, count_batch
from lesioncount.trust.calibration import NOT_CHECKED, Calibration
from lesioncount.trust.conformal import ConformalCounts
from lesioncount.trust.fitting import CalibrationFit, ConformalFit
from lesioncount.trust.fitting.lists import LEVELS, CandidateLists, ListRule

SHAPE = (7, 12, 10)
ORIENTATIONS = {
    "axial": (1, 0, 0, 0, 1, 0),
    "feet first": (1, 0, 0, 0, -1, 0),
    "oblique": (0.8, 0.6, 0.0, 0.0, 0.0, -1.0),
}
KEPT = ("PatientID", "PatientName", "StudyInstanceUID", "FrameOfReferenceUID", "StudyID", "AccessionNumber")

# What dciodvfy says of label maps before it knew of them, and of reports that refer to them.
NOT_KNOWN = ("Information Object Not found", "SegmentNumber not monotonically", "Referenced SOP Class that is not segm")


@pytest.fixture
def probabilities():
    """Three candidates, of which the second lies in one slice; the outer slices are empty."""
    values = np.zeros(SHAPE, np.float32)
    values[1:3, 2:5, 2:4] = 0.8
    values[4, 8:10, 1] = 0.3
    values[3:6, 1:3, 7:9] = 0.2
    values[4, 2, 8] = 1.0
    return values


def patient(shape=SHAPE, **place):
    slices = ct_series(shape, **place)
    for one in slices:
        one.PatientID, one.PatientName, one.AccessionNumber = "P-17", "Müller^Jörg", "A1"
        one.SpecificCharacterSet = "ISO_IR 100"
    return slices


def as_nifti(path, values, slices):
    """As converters turn series: columns, rows from the back, slices."""
    turn = np.array([[0, 0, 1, 0], [0, -1, 0, values.shape[1] - 1], [1, 0, 0, 0], [0, 0, 0, 1]])
    return save(path, values.transpose(2, 1, 0)[:, ::-1].copy(), affine_of(slices) @ turn)


def places(inside, affine):
    mm = np.argwhere(inside) @ affine[:3, :3].T + affine[:3, 3]
    return mm[np.lexsort(mm.round(2).T)]


def counted(inputs, out, kind="labelmap", series=None, **options):
    return count_batch(inputs, out, settings=Settings(dicom=DicomOutput(kind, series)), **options)


def groups_of(report):
    """The group of the scan as a whole, and those of the candidates."""
    content = highdicom.sr.Comprehensive3DSR.from_dataset(report).content
    whole = content.get_image_measurement_groups()
    return whole[0], content.get_volumetric_roi_measurement_groups()


def numbers(group):
    return {
        (item.name.meaning, item.derivation and item.derivation.meaning): item.value
        for item in group.get_measurements()
    }


@pytest.mark.parametrize("kind", ["labelmap", "binary"])
@pytest.mark.parametrize("orientation", list(ORIENTATIONS))
@pytest.mark.parametrize("form", ["seg", "nifti"])
def test_candidates_lie_in_the_patient_where_the_map_has_them(tmp_path, probabilities, kind, orientation, form):
    slices = patient(orientation=ORIENTATIONS[orientation])
    series = None
    if form == "seg":
        path = save_segmentation(tmp_path / "map.dcm", slices, probabilities, "FRACTIONAL")
    else:
        path = as_nifti(tmp_path / "map.nii.gz", probabilities, slices)
        series = save_series(tmp_path / "series", slices)
    results = counted([path], tmp_path / "out", kind, series)
    assert not results.failed
    seg = highdicom.seg.segread(tmp_path / "out" / "map_seg.dcm")
    assert seg.segmentation_type.value == kind.upper()
    for name in KEPT:
        assert seg[name].value == slices[0][name].value
    written = open_mask(tmp_path / "out" / "map_seg.dcm")
    np.testing.assert_allclose(
        places(written.mask(), written.affine), places(probabilities > 0.1, affine_of(slices)), atol=1e-3
    )
    # Candidate by candidate: the peak of each row of the table lies in the segment of that number.
    for row in results.record("map").lesions:
        index = np.linalg.solve(written.affine, [row.peak_x_mm, row.peak_y_mm, row.peak_z_mm, 1])[:3]
        np.testing.assert_allclose(index, index.round(), atol=1e-2)
        assert written.values()[tuple(index.round().astype(int))] == row.label
        assert (written.values() == row.label).sum() == row.n_voxels


@pytest.mark.parametrize("kind", ["labelmap", "binary"])
def test_segments_say_how_probable_they_are_and_refer_to_the_images(tmp_path, probabilities, kind):
    slices = patient()
    path = save_segmentation(tmp_path / "map.dcm", slices, probabilities, "FRACTIONAL")
    record = counted([path], tmp_path / "out", kind).record("map")
    seg = highdicom.seg.segread(tmp_path / "out" / "map_seg.dcm")
    assert list(seg.segment_numbers) == [1, 2, 3]
    for row in record.lesions:
        described = seg.get_segment_description(row.label)
        assert f"existence {row.existence:.4f}" in described.SegmentDescription
        assert f"({row.existence:.2f})" in described.segment_label
        assert described.tracking_uid
    # The images first: viewers show a segmentation on what it refers to first.
    referred = seg.ReferencedSeriesSequence
    assert referred[0].SeriesInstanceUID == slices[0].SeriesInstanceUID
    assert referred[1].SeriesInstanceUID == dcmread(path).SeriesInstanceUID
    by_uid = {one.SOPInstanceUID: one for one in slices}
    for frame in seg.PerFrameFunctionalGroupsSequence:
        source = frame.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
        here = frame.PlanePositionSequence[0].ImagePositionPatient
        np.testing.assert_allclose(by_uid[source].ImagePositionPatient, here, atol=1e-3)


def test_candidates_on_a_list_are_marked_and_its_promise_is_in_the_report(tmp_path, probabilities):
    path = save_segmentation(tmp_path / "map.dcm", patient(), probabilities, "FRACTIONAL")
    lists = CandidateLists({"missed": (0.5,) * len(LEVELS), "false": (None,) * len(LEVELS)}, 0.0, 40)
    rule = ListRule("missed", 0.1)
    fit = CalibrationFit(Calibration(origin="the counts of 40 scans"), lists=lists)
    sure = ConformalFit(Calibration(), ConformalCounts("interval", (tuple(sorted((0.0, 0.5, 2.25) * 10)),)))
    fit = replace(fit, conformal=sure)
    settings = Settings(dicom=DicomOutput("labelmap", None), calibration=fit, listed=rule, conformal=True)
    count_batch([path], tmp_path / "out", settings=settings)
    seg = highdicom.seg.segread(tmp_path / "out" / "map_seg.dcm")
    said = [", on the list" in seg.get_segment_description(number).SegmentDescription for number in (1, 2, 3)]
    whole, candidates = groups_of(dcmread(tmp_path / "out" / "map_sr.dcm"))
    named = [
        {item.name.meaning: item.value.meaning for item in one.get_qualitative_evaluations()} for one in candidates
    ]
    answers = [one["On the list"] for one in named]
    assert list(zip(said, answers, strict=True)) == [(True, "Yes"), (False, "No"), (True, "Yes")]
    texts = " ".join(str(item.value) for item in _text_items(whole))
    assert f"{rule.promise} It promises nothing if run.json says that these scans are unlike those." in texts
    assert "conformal interval: guaranteed for scans like those of the calibration. It promises nothing if" in texts
    assert not any("guaranteed" in item.name.meaning for item in whole.get_measurements())
    assert "from the counts of 40 scans" in texts


def test_a_stated_calibration_is_said_to_be_unchecked(tmp_path, probabilities):
    path = save_segmentation(tmp_path / "map.dcm", patient(), probabilities, "FRACTIONAL")
    stated = Calibration(offset=-1.0, origin=f"a stated mean of 1.7 ± 0.3, {NOT_CHECKED}: count 10 scans")
    settings = Settings(dicom=DicomOutput("labelmap", None), calibration=CalibrationFit(stated))
    count_batch([path], tmp_path / "out", settings=settings)
    seg = highdicom.seg.segread(tmp_path / "out" / "map_seg.dcm")
    assert NOT_CHECKED in seg.get_segment_description(1).SegmentDescription
    whole, _ = groups_of(dcmread(tmp_path / "out" / "map_sr.dcm"))
    texts = " ".join(str(item.value) for item in _text_items(whole))
    assert "a stated mean of 1.7 +/- 0.3, not checked against any counted scan" in texts


def _text_items(group):
    return [item for item in group[0].ContentSequence if item.ValueType == "TEXT"]


@pytest.mark.parametrize("kind", ["labelmap", "binary"])
def test_the_report_has_the_count_and_a_group_for_each_candidate(tmp_path, probabilities, kind):
    path = save_segmentation(tmp_path / "map.dcm", patient(), probabilities, "FRACTIONAL")
    record = counted([path], tmp_path / "out", kind).record("map")
    report, seg = (dcmread(tmp_path / "out" / f"map_{name}.dcm") for name in ("sr", "seg"))
    assert report.PatientID == "P-17"
    assert report.PatientName == "Müller^Jörg"
    assert report.StudyInstanceUID == seg.StudyInstanceUID
    whole, candidates = groups_of(report)
    count = record.counted.raw
    measured = numbers(whole)
    for how in ("Mode", "Median", "Mean"):
        name = "Number of lesions (observable entity)", how
        assert measured[name] == pytest.approx(getattr(count, f"count_{how.lower()}"), rel=1e-9)
    for end, value in (("lower", count.interval90_low), ("upper", count.interval90_high)):
        assert measured[f"Number of lesions, {end} end of 90 % interval", None] == value
    texts = [item.value for item in report.iterall() if item.keyword == "TextValue"]
    (protocol,) = (json.loads(text.removeprefix("protocol: ")) for text in texts if text.startswith("protocol: "))
    assert CountingProtocol.from_dict(protocol) == CountingProtocol()
    assert len(candidates) == len(record.lesions) == 3
    by_number = {int(item.SegmentNumber): item for item in seg.SegmentSequence}
    for group, row in zip(candidates, record.lesions, strict=True):
        segment = by_number[row.label]
        assert group.tracking_uid == segment.TrackingUID
        assert group.tracking_identifier == segment.TrackingID == f"map lesion {row.label}"
        referred = group.referenced_segment[0].ReferencedSOPSequence[0]
        assert referred.ReferencedSOPInstanceUID == seg.SOPInstanceUID
        assert referred.ReferencedSegmentNumber == row.label
        measured = numbers(group)
        assert measured["Volume", None] == pytest.approx(row.volume_mm3)
        assert measured["Certainty of Finding", None] == pytest.approx(100 * row.existence, rel=1e-8)


@pytest.mark.parametrize("kind", ["labelmap", "binary"])
@pytest.mark.parametrize("form", ["seg", "nifti"])
def test_a_validator_finds_no_error(tmp_path, probabilities, kind, form):
    slices = patient()
    path = save_segmentation(tmp_path / "map.dcm", slices, probabilities, "FRACTIONAL")
    series = None
    if form == "nifti":
        path, series = as_nifti(tmp_path / "map.nii.gz", probabilities, slices), save_series(tmp_path / "dicom", slices)
    counted([path], tmp_path / "out", kind, series)
    errors = [line for name in ("seg", "sr") for line in errors_of(tmp_path / "out" / f"map_{name}.dcm")]
    if any("Information Object Not found" in line for line in errors):
        assert kind == "labelmap"
        errors = [line for line in errors if not any(known in line for known in NOT_KNOWN)]
    assert errors == []


def test_candidates_written_as_dicom_are_the_truth_of_their_own_map(tmp_path, probabilities):
    path = save_segmentation(tmp_path / "map.dcm", patient(), probabilities, "FRACTIONAL")
    for kind in ("labelmap", "binary"):
        counted([path], tmp_path / kind, kind)
        found = true_lesions(tmp_path / kind / "map_seg.dcm", open_map(path).grid, CountingProtocol())
        assert len(found) == 3
        assert (found.label_map() > 0).sum() == (probabilities > 0.1).sum()


def test_counts_are_compared_with_segmentations_without_endings(tmp_path, probabilities):
    (tmp_path / "maps").mkdir()
    (tmp_path / "truth").mkdir()
    for name, kind in (("P1", "BINARY"), ("P2", "LABELMAP")):
        slices = patient()
        save_segmentation(tmp_path / "maps" / name, slices, probabilities, "FRACTIONAL")
        drawn = np.where(probabilities == 0.8, 1, np.where(probabilities == 0.3, 2, 0)).astype(np.uint8)
        segments = [lesion(number, tracking=True) for number in (1, 2)]
        save_segmentation(tmp_path / "truth" / name, slices, drawn, kind, segments)
    results = counted([tmp_path / "maps"], tmp_path / "out")
    compared = compare(results.of(), TruthOptions(masks=(tmp_path / "truth",)), read_maps=True)
    assert [truth.count for truth in compared.truths] == [2, 2]
    matches = [match for truth in compared.truths for match in truth.matches.values()]
    assert [match.n_own for match in matches] == [2, 2]
    assert [match.touches.sum() for match in matches] == [2, 2]  # of three candidates


def test_a_scan_without_candidates_has_a_report_and_no_segmentation(tmp_path):
    empty = np.full(SHAPE, 0.02, np.float32)
    path = save_segmentation(tmp_path / "map.dcm", patient(), empty, "FRACTIONAL")
    assert not counted([path], tmp_path / "out").failed
    assert not (tmp_path / "out" / "map_seg.dcm").exists()
    whole, candidates = groups_of(dcmread(tmp_path / "out" / "map_sr.dcm"))
    assert numbers(whole)["Number of lesions (observable entity)", "Mode"] == 0
    assert candidates == []
    assert errors_of(tmp_path / "out" / "map_sr.dcm") == []


def test_many_segmentations_are_counted_side_by_side_and_resumed(tmp_path, probabilities):
    for number in range(3):
        slices = patient()
        for one in slices:
            one.PatientID = f"P-{number}"
        save_segmentation(tmp_path / f"p{number}", slices, probabilities, "FRACTIONAL")
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / f"p{number}").rename(tmp_path / "in" / f"p{number}")
    out = tmp_path / "out"
    assert main(["count", str(tmp_path / "in"), "-o", str(out), "--write=dicom", "--jobs", "2", "--quiet"]) == 0
    assert [dcmread(out / f"p{number}_sr.dcm").PatientID for number in range(3)] == ["P-0", "P-1", "P-2"]
    before = {path.name: path.read_bytes() for path in out.glob("*.dcm")}
    assert len(before) == 6
    (out / "p1_sr.dcm").unlink()
    assert main(["count", str(tmp_path / "in"), "-o", str(out), "--write=dicom", "--resume", "--quiet"]) == 0
    after = {path.name: path.read_bytes() for path in out.glob("*.dcm")}
    assert {name for name in after if after[name] != before[name]} == {"p1_seg.dcm", "p1_sr.dcm"}
    same = [dcmread(out / "p1_seg.dcm"), highdicom.seg.segread(out / "p1_seg.dcm")]
    assert same[0].SegmentSequence[1].TrackingUID in before["p1_seg.dcm"].decode("latin-1")  # the same candidates


def test_a_series_that_was_changed_is_read_again(tmp_path, probabilities):
    slices = patient()
    path, series = as_nifti(tmp_path / "map.nii.gz", probabilities, slices), save_series(tmp_path / "series", slices)
    counted([path], tmp_path / "out", series=series)
    for one in slices:
        one.PatientID = "P-18"
    for file in series.iterdir():
        file.unlink()
    series.rmdir()
    save_series(series, slices)
    counted([path], tmp_path / "out", series=series, resume=True)
    assert dcmread(tmp_path / "out" / "map_sr.dcm").PatientID == "P-18"


def test_without_dicom_its_files_go_when_results_are_replaced(tmp_path, probabilities):
    path = save_segmentation(tmp_path / "map.dcm", patient(), probabilities, "FRACTIONAL")
    out = tmp_path / "out"
    counted([path], out)
    count_batch([path], out, overwrite=True)
    assert list(out.glob("*.dcm")) == []
    (out / "map_sr.dcm").write_bytes(b"of somebody else")
    with pytest.raises(MapFileError, match="not a result of an earlier run"):
        counted([path], out, overwrite=True)


def test_each_map_has_a_folder_of_images_of_its_name(tmp_path, probabilities):
    paths = []
    for name in ("a", "b"):
        slices = patient()
        for one in slices:
            one.PatientID = name
        save_series(tmp_path / "series" / name, slices)
        paths.append(as_nifti(tmp_path / f"{name}.nii.gz", probabilities, slices))
    paths.append(as_nifti(tmp_path / "c.nii.gz", probabilities, slices))
    results = counted(paths, tmp_path / "out", series=tmp_path / "series")
    assert [dcmread(tmp_path / "out" / f"{name}_sr.dcm").PatientID for name in "ab"] == ["a", "b"]
    assert [(scan.name, "Expected a folder called c" in scan.error) for scan in results.failed] == [("c", True)]


def test_images_lie_in_the_folders_of_their_maps_or_where_a_pattern_says(tmp_path, probabilities):
    for number in ("1", "2"):
        slices = patient()
        for one in slices:
            one.PatientID = number
        as_nifti(tmp_path / "maps" / f"sub-{number}" / "ses-1" / "prob.nii.gz", probabilities, slices)
        save_series(tmp_path / "series" / f"sub-{number}" / "ses-1", slices)
        save_series(tmp_path / "other" / number / "T2 FLAIR", slices)
    for name, series in (("a", "series"), ("b", "other/{participant}/*FLAIR*")):
        results = counted([tmp_path / "maps"], tmp_path / name, series=tmp_path / series)
        assert not results.failed
        reports = {scan.name: dcmread(tmp_path / name / f"{scan.name}_sr.dcm").PatientID for scan in results.counted}
        assert sorted(reports.values()) == ["1", "2"]
        assert all(f"sub-{number}" in scan for scan, number in reports.items())


def test_images_of_one_patient_are_never_those_of_two_scans(tmp_path, probabilities):
    slices = patient()
    for number in ("1", "2"):
        as_nifti(tmp_path / "maps" / f"sub-{number}" / "prob.nii.gz", probabilities, slices)
    save_series(tmp_path / "series" / "prob", slices)
    results = counted([tmp_path / "maps"], tmp_path / "out", series=tmp_path / "series")
    assert ["those of 2 scans" in scan.error for scan in results.failed] == [True, True]
    assert not list((tmp_path / "out").glob("*.dcm"))


def error_of(path, tmp_path, series):
    (scan,) = counted([path], tmp_path / "out", series=series, overwrite=True).failed
    assert not list((tmp_path / "out").glob("*.dcm"))
    return scan.error


def test_a_map_of_another_grid_than_the_series_is_an_error(tmp_path, probabilities):
    slices = patient()
    series = save_series(tmp_path / "series", slices)
    shifted = affine_of(slices)
    shifted[2, 3] += 0.7
    for affine in (shifted, affine_of(slices) @ np.diag([1, 1, 2, 1]), np.eye(4)):
        path = save(tmp_path / "map.nii.gz", probabilities, affine)
        assert "lie elsewhere" in error_of(path, tmp_path, series)
    cropped = save(tmp_path / "map.nii.gz", probabilities[:-1], affine_of(slices))
    assert "Is it the series that the map was made from?" in error_of(cropped, tmp_path, series)
    np.save(tmp_path / "map.npy", probabilities)
    assert "does not say where its voxels lie" in error_of(tmp_path / "map.npy", tmp_path, series)


def test_series_that_are_no_volume_are_errors(tmp_path, probabilities):
    slices = patient()
    path = as_nifti(tmp_path / "map.nii.gz", probabilities, slices)
    gap = save_series(tmp_path / "gap", [*slices[:3], *slices[4:]])
    assert "equal distances" in error_of(path, tmp_path, gap)
    save_series(tmp_path / "two" / "x", slices)
    save_series(tmp_path / "two" / "y", patient())
    assert "there are 2 series" in error_of(path, tmp_path, tmp_path / "two")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "readme.txt").write_text("nothing")
    assert "no DICOM images" in error_of(path, tmp_path, tmp_path / "none")
    tilted = [*slices[:-1], ct_series(SHAPE, orientation=ORIENTATIONS["oblique"])[-1]]
    tilted[-1].SeriesInstanceUID = slices[0].SeriesInstanceUID
    assert "not parallel" in error_of(path, tmp_path, save_series(tmp_path / "tilted", tilted))
    for one in slices:
        del one.FrameOfReferenceUID
    assert "nothing can refer to it" in error_of(path, tmp_path, save_series(tmp_path / "nowhere", slices))


def test_a_series_lies_where_its_slices_do_whatever_their_order(tmp_path):
    for name, orientation in ORIENTATIONS.items():
        slices = patient(orientation=orientation)
        series = read_series(save_series(tmp_path / name, slices))
        assert place(series.grid, series.grid, "itself").is_inside
        np.testing.assert_allclose(series.grid.affine, affine_of(slices), atol=1e-6)
        assert [one.InstanceNumber for one in series.images] == list(range(1, SHAPE[0] + 1))


def test_a_series_may_be_one_file_with_all_slices(tmp_path, probabilities):
    slices = patient()
    for one in slices:
        one.ImageType, one.ContentDate, one.ContentTime = ["ORIGINAL", "PRIMARY", "AXIAL"], "20260101", "120000"
        one.AcquisitionDate, one.AcquisitionTime, one.Manufacturer = "20260101", "120000", "m"
        one.RescaleSlope, one.RescaleIntercept, one.KVP = 1, 0, 120
    enhanced = highdicom.legacy.LegacyConvertedEnhancedCTImage(
        slices, series_instance_uid=slices[0].SeriesInstanceUID, series_number=1, sop_instance_uid="1.2.3.4.5",
        instance_number=1,
    )  # fmt: skip
    path, series = as_nifti(tmp_path / "map.nii.gz", probabilities, slices), save_series(tmp_path / "s", [enhanced])
    assert not counted([path], tmp_path / "out", series=series).failed
    written = open_mask(tmp_path / "out" / "map_seg.dcm")
    np.testing.assert_allclose(
        places(written.mask(), written.affine), places(probabilities > 0.1, affine_of(slices)), atol=1e-3
    )
    source = dcmread(tmp_path / "out" / "map_seg.dcm").ReferencedSeriesSequence[0].ReferencedInstanceSequence[0]
    assert source.ReferencedSOPInstanceUID == "1.2.3.4.5"


def test_calibrated_counts_of_an_ensemble_are_in_the_report(tmp_path, probabilities):
    slices = patient()
    for name, values in (("a", probabilities), ("b", probabilities**2)):
        (tmp_path / name).mkdir()
        save_segmentation(tmp_path / name / "map.dcm", slices, values, "FRACTIONAL")
    settings = Settings(dicom=DicomOutput(), calibration=CalibrationFit(Calibration(slope=1.0, offset=-1.0)))
    results = count_batch([tmp_path / "a", tmp_path / "b"], tmp_path / "out", settings=settings, members=True)
    (scan,) = results.counted
    whole, candidates = groups_of(dcmread(tmp_path / "out" / f"{scan.name}_sr.dcm"))
    mean = scan.counted.calibrated.count_mean
    assert numbers(whole)["Number of lesions (observable entity)", "Mean"] == pytest.approx(mean)
    rows = [row for row in results.record(scan.name).lesions if row.member == 1]
    assert len(candidates) == len(rows) == 3
    for group, row in zip(candidates, rows, strict=True):
        corrected = numbers(group)["Certainty of Finding, calibrated", None]
        assert corrected == pytest.approx(100 * row.existence_calibrated)
        assert corrected < numbers(group)["Certainty of Finding", None] or row.existence == 1


def test_maps_that_do_not_say_whose_they_are_need_a_series(tmp_path, probabilities, capsys):
    path = as_nifti(tmp_path / "map.nii.gz", probabilities, patient())
    assert main(["count", str(path), "-o", str(tmp_path / "out"), "--write=dicom"]) == 2
    assert "--dicom-series FOLDER" in capsys.readouterr().err
    assert main(["count", str(path), "-o", str(tmp_path / "out"), "--dicom-series", str(tmp_path / "nothing")]) == 2
    assert not (tmp_path / "out").exists()


def test_without_highdicom_it_is_said_before_counting(tmp_path, probabilities, monkeypatch, capsys):
    path = as_nifti(tmp_path / "map.nii.gz", probabilities, patient())
    monkeypatch.setitem(__import__("sys").modules, "highdicom", None)
    assert main(["count", str(path), "-o", str(tmp_path / "out"), "--write=dicom"]) == 2
    assert "pip install '.[dicom]' in the clone" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_detections_are_reported_where_they_lie(tmp_path, capsys):
    slices = patient(orientation=ORIENTATIONS["oblique"])
    series = save_series(tmp_path / "series", slices)
    inside = (affine_of(slices) @ [3, 4, 5, 1])[:3] * (-1, -1, 1)  # as ITK and DICOM have it
    table = tmp_path / "d.csv"
    table.write_text("seriesuid,coordX,coordY,coordZ,probability\ns1,{},{},{},0.75\n".format(*inside))
    out = tmp_path / "out"
    run = ("count", str(table), "-o", str(out), "--quiet")
    assert main([*run, "--write", "dicom"]) == 2
    assert "--dicom-series" in capsys.readouterr().err
    assert main([*run, "--dicom-series", str(series)]) == 0, capsys.readouterr()
    assert sorted(path.name for path in out.glob("*.dcm")) == ["s1_sr.dcm"]
    report = dcmread(out / "s1_sr.dcm")
    assert report.PatientID == "P-17"
    whole, (candidate,) = groups_of(report)
    assert numbers(candidate) == {("Certainty of Finding", None): 75}
    assert numbers(whole)["Number of lesions (observable entity)", "Mean"] == 0.75
    np.testing.assert_allclose(candidate.roi.graphic_data[0], inside, atol=1e-3)
    assert errors_of(out / "s1_sr.dcm") == []
    assert main([*run, "--dicom-series", str(series), "--resume"]) == 0


def test_detections_without_a_place_in_the_images_are_not_reported(tmp_path, capsys):
    series = save_series(tmp_path / "series", patient())
    wrong = (("x_px,y_px,z_px", "1,2,3", "give the image"), ("x_mm,y_mm,z_mm", "0,0,900", "outside"))
    for columns, where, why in wrong:
        table = tmp_path / "d.csv"
        table.write_text(f"scan,{columns},score\ns1,{where},0.75\n")
        out = tmp_path / columns
        assert main(["count", str(table), "-o", str(out), "--dicom-series", str(series)]) == 1
        assert why in capsys.readouterr().err
