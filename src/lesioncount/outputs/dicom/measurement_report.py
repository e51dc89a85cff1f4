"""The count of a scan → a DICOM Comprehensive 3D SR, by the template for measurement reports (TID 1500)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lesioncount.folder.plain import plain_text
from lesioncount.optional import optional
from lesioncount.outputs.dicom.reference import DicomReference
from lesioncount.outputs.dicom.segments import MAKER, Tracked, ascii_text
from lesioncount.outputs.output import lesions_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record
from lesioncount.version import __version__

# Of codes that no public scheme has.
_SCHEME = "99LESIONCOUNT"


def report_of(record: Record, tracked: Tracked, reference: DicomReference, seg: Any | None) -> Any:
    """A report with a group of measurements for the scan as a whole, and one for each candidate.

    Parameters
    ----------
    record : Record
        Of a scan that was counted.
    tracked : Tracked
    reference : DicomReference
    seg : highdicom.seg.Segmentation or None
        Of its candidates; None if there are none, or if they are detections.
    """
    writer = _Writer(reference, tracked, seg)
    uid = optional("pydicom.uid", "dicom", "Writing DICOM").generate_uid
    content = writer.sr.MeasurementReport(
        observation_context=writer.observer(),
        procedure_reported=writer.codes.SCT.ImagingProcedure,
        title=writer.codes.DCM.ImagingMeasurementReport,
        imaging_measurements=[writer.whole(record), *map(writer.candidate, lesions_of(record))],
    )
    made_by = {name: MAKER[name] for name in ("manufacturer", "manufacturer_model_name", "software_versions")}
    return writer.sr.Comprehensive3DSR(
        evidence=[*reference.images, *(() if seg is None else (seg,))],
        content=content,
        series_instance_uid=uid(),
        series_number=int(reference.first.get("SeriesNumber") or 0) + 101,
        sop_instance_uid=uid(),
        instance_number=1,
        is_complete=True,
        series_description="Lesion count",
        **made_by,
        device_serial_number=MAKER["device_serial_number"],
    )


class _Writer:
    """Content items about one scan."""

    def __init__(self, reference: DicomReference, tracked: Tracked, seg: Any | None) -> None:
        self.sr: Any = optional("highdicom.sr", "dicom", "Writing DICOM")
        self.codes: Any = optional("pydicom.sr.codedict", "dicom", "Writing DICOM").codes
        self._reference, self._tracked, self._seg = reference, tracked, seg

    def observer(self) -> Any:
        """The device that made the report: this package."""
        device = self.sr.DeviceObserverIdentifyingAttributes(
            uid=optional("pydicom.uid", "dicom", "Writing DICOM").generate_uid(
                entropy_srcs=["lesioncount", __version__]
            ),
            manufacturer_name=MAKER["manufacturer"],
            model_name=MAKER["manufacturer_model_name"],
        )
        context = self.sr.ObserverContext(observer_type=self.codes.DCM.Device, observer_identifying_attributes=device)
        return self.sr.ObservationContext(observer_device_context=context)

    def whole(self, record: Record) -> Any:
        """The count, its interval, and how it was counted."""
        return self.sr.MeasurementsAndQualitativeEvaluations(
            tracking_identifier=self._tracking(0),
            finding_category=self.codes.SCT.MorphologicallyAbnormalStructure,
            finding_type=self.codes.SCT.Lesion,
            algorithm_id=self.sr.AlgorithmIdentification(
                name="lesioncount", version=__version__, parameters=[ascii_text(text) for text in _parameters(record)]
            ),
            measurements=list(self._counts(record)),
        )

    def candidate(self, lesion: LesionRow) -> Any:
        """The volume and existence of a candidate, whether it is on a list, and its segment or its place."""
        return self.sr.VolumetricROIMeasurementsAndQualitativeEvaluations(
            tracking_identifier=self._tracking(lesion.label),
            **self._place(lesion),
            finding_category=self.codes.SCT.MorphologicallyAbnormalStructure,
            finding_type=self.codes.SCT.Lesion,
            measurements=list(self._measured(lesion)),
            qualitative_evaluations=list(self._said(lesion)),
        )

    def _place(self, lesion: LesionRow) -> dict[str, Any]:
        source = self.sr.SourceSeriesForSegmentation(self._reference.image_series)
        if self._seg is None:
            point = self._reference.point(lesion)
            frame = self._reference.frame_of_reference
            return {"referenced_volume_surface": self.sr.VolumeSurface("POINT", point, frame, source_series=source)}
        segment = self.sr.ReferencedSegment(
            sop_class_uid=self._seg.SOPClassUID,
            sop_instance_uid=self._seg.SOPInstanceUID,
            segment_number=lesion.label,
            source_series=source,
        )
        return {"referenced_segment": segment}

    def _tracking(self, label: int) -> Any:
        return self.sr.TrackingIdentifier(uid=self._tracked.uid(label), identifier=self._tracked.name(label))

    def _measured(self, lesion: LesionRow) -> Iterator[Any]:
        if lesion.volume_mm3 is not None:
            yield self._measure(self.codes.SCT.Volume, lesion.volume_mm3, self.codes.UCUM.CubicMillimeter)
        percent = self.codes.UCUM.Percent
        yield self._measure(self.codes.DCM.CertaintyOfFinding, 100 * lesion.existence, percent)
        if lesion.existence_calibrated is not None:
            name = self._own("EXISTENCE_CALIBRATED", "Certainty of Finding, calibrated")
            yield self._measure(name, 100 * lesion.existence_calibrated, percent)

    def _said(self, lesion: LesionRow) -> Iterator[Any]:
        if lesion.on_list is not None:
            answer = self.codes.SCT.Yes if lesion.on_list == "yes" else self.codes.SCT.No
            yield self.sr.QualitativeEvaluation(self._own("ON_LIST", "On the list"), answer)

    def _counts(self, record: Record) -> Iterator[Any]:
        numbers, codes = record.counted, self.codes
        count, lesions = numbers.best, self._own("{lesions}", "lesions", scheme="UCUM")
        for how, value in (
            (codes.SCT.Mode, count.count_mode),
            (codes.SCT.Median, count.count_median),
            (codes.SCT.Mean, count.count_mean),
        ):
            yield self._measure(codes.SCT.NumberOfLesions, value, lesions, derivation=how)
        ends = {"": (count.interval90_low, count.interval90_high), " conformal": numbers.guaranteed}
        for kind, interval in ends.items():
            for end, value in zip(("lower", "upper"), interval or (), strict=False):
                code = f"INTERVAL90{'_CONFORMAL' if kind else ''}_{'LOW' if end == 'lower' else 'HIGH'}"
                yield self._measure(
                    self._own(code, f"Number of lesions, {end} end of{kind} 90 % interval"), value, lesions
                )
        if numbers.candidates.total_volume_mm3 is not None:
            name = self._own("TOTAL_VOLUME", "Volume of all candidates")
            yield self._measure(name, numbers.candidates.total_volume_mm3, codes.UCUM.CubicMillimeter)

    def _measure(self, name: Any, value: float, unit: Any, **how: Any) -> Any:
        return self.sr.Measurement(name=name, value=float(f"{value:.10g}"), unit=unit, **how)  # 16 characters at most

    def _own(self, value: str, meaning: str, scheme: str = _SCHEME) -> Any:
        return self.sr.CodedConcept(value, scheme, meaning)


# A report is written before all scans are counted, which is when it is known.
_UNLESS_UNLIKE = "It promises nothing if run.json says that these scans are unlike those."


def _parameters(record: Record) -> Iterator[str]:
    """How it was counted, as text."""
    settings = record.settings
    if settings is not None:
        yield f"protocol: {plain_text(settings.protocol.to_dict())}"
        if settings.listed is not None:
            yield f"list: {settings.listed}. {settings.list_promise} {_UNLESS_UNLIKE}"
    numbers = record.counted
    if numbers.guaranteed is not None:
        yield f"conformal interval: guaranteed for scans like those of the calibration. {_UNLESS_UNLIKE}"
    if numbers.calibration is not None:
        origin = "" if settings is None or settings.calibration is None else f", from {settings.calibration.origin}"
        yield f"calibration: {numbers.calibration}{origin}"
    if numbers.ensemble is not None:
        yield f"members of the ensemble: {numbers.ensemble.n_members}"
    yield from (f"warning: {text}" for text in record.warnings)
