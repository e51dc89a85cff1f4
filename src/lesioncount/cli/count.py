"""``lesioncount count``: maps in files → tables, records and a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lesioncount.cli.batch_runs import ended, n_shown, run_arguments, write_page
from lesioncount.cli.map_arguments import (
    IMAGES_SUFFIX,
    INTERVAL,
    LEVEL,
    add_definition,
    add_maps,
    add_run,
    add_written,
    selection_of,
    settings_of,
    spacing_of,
)
from lesioncount.cli.options import (
    REPEATED,
    SUFFIX,
    Option,
    add_group,
    add_options,
    add_output,
    add_quiet,
    given,
)
from lesioncount.cli.printing import Summary, some
from lesioncount.cli.truth import KNOWN, add_known_arguments, known_options, print_learned
from lesioncount.errors import CalibrationError, MapFileError, listed

if TYPE_CHECKING:
    from lesioncount.assess.known_counts import Learned
    from lesioncount.results.record import Entry, Record
    from lesioncount.runs import DicomOutput, Results, Settings
    from lesioncount.trust.fitting.lists import ListRule

# Columns of a terminal that the numbers take.
_NUMBERS = 61

_REGIONS: dict[str, Option] = {
    "--regions FILE|FOLDER|PATTERN": "count in each region of this label map, too, on the grid of the maps; in a "
    "folder, that of the same name or BIDS entities as the map, or of the same participant; a pattern is such as "
    "'regions/{participant}_{session}_dseg.nii.gz'",
    "--region-names TABLE": "what labels are called: a table with the columns index and name, as dseg.tsv in BIDS "
    "(default: by their numbers)",
    "--regions-suffix TEXT": (SUFFIX.format("a label map", "_dseg"), {"default": ""}),
    "--within DISTANCE": (
        "a region of its own by distance: 'periventricular = ventricles <= 3mm' holds candidates of which any voxel "
        "comes so near. May be repeated",
        REPEATED,
    ),
    "--ask QUESTION": (
        "the probability that this is so, such as 'count >= 9' or 'periventricular >= 1 and juxtacortical >= 1', or "
        "the name of a criterion (lesioncount questions lists them). May be repeated",
        REPEATED,
    ),
}

_TRUST: dict[str, Option] = KNOWN | {
    "--calibration FILE": "correct the counts with this calibration, made by lesioncount calibrate",
    "--interval {distribution,conformal}": (INTERVAL.format("scans"), {"default": "distribution"}),
    "--list PROMISE": (
        "mark the candidates on a list that keeps a promise on average, missed<=10%% or false<=20%%, in lesions.tsv, "
        "on pages and in DICOM; needs a calibration that was fitted from lesions",
        {"dest": "listed"},
    ),
    "--reviews FOLDER": "results that were reviewed (lesioncount review): candidates that were decided there count as "
    "decided, in reviewed_counts.tsv",
    "--reader NAME": "whose reviews (default: the only reader there is)",
    "--reads TABLE": "what readers have counted in these scans, as a table for --truth-counts: what another reader "
    "would count is then in counts.tsv and the report. Needs a calibration that was fitted to several readers",
    "--members": "treat each input folder as one member of an ensemble (folds, MC dropout, test-time augmentation) and "
    "combine the counts of maps in the same place, or with the same BIDS entities",
}

_WRITTEN = {
    "labels": "label maps of the candidates, SCAN_lesions.nii.gz or .zarr",
    "existence": "maps of their existence, SCAN_existence.nii.gz",
    "colours": "label maps with colour tables for viewers, SCAN_lesions.*",
    "bids": "a BIDS derivative",
    "dicom": "a segmentation and a report, SCAN_seg.dcm and SCAN_sr.dcm",
    "parquet": "each table once more, for millions of rows",
}

_COUNT_OUTPUTS: dict[str, Option] = {
    "--report": "also write report.html: one page, or of more than 40 scans a page with the folder report/ beside it",
    "--images FOLDER|PATTERN": "show candidates in the report on these images: a folder, in which they have the names "
    "or BIDS entities of the maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz'",
    "--images-suffix TEXT": IMAGES_SUFFIX,
}

_DICOM: dict[str, Option] = {
    "--dicom-series FOLDER|PATTERN": "the images that the map was made from; for several maps, a folder with a folder "
    "of the name of each, or a pattern such as 'dicom/{participant}/{session}'. Not needed for DICOM maps. Means "
    "--write dicom",
    "--dicom-type {labelmap,binary}": "of the segmentation; binary is for older viewers (default: labelmap). Means "
    "--write dicom",
}


# On the first screen of help; the others are shown by --help-all.
FIRST = (
    *("output", "protocol", "threshold", "min_size", "mask", "channel", "scale", "logits", "known", "calibration"),
    *("members", "report", "write", "csv", "jobs", "resume"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = (
        "Writes counts.tsv, lesions.tsv, run.json and one JSON file per scan, regions.tsv and answers.tsv where "
        "these are asked for, and a line of runs.jsonl. Exit code: 0 if all scans were counted, 1 if some failed, 2 if "
        "nothing could be done, 130 if interrupted."
    )
    maps = (
        "probability maps: files, folders, glob patterns, or addresses (s3://, gs://, https://); or tables of "
        "detections: CSV, COCO, YOLO, MONAI, nnDetection, QuPath"
    )
    parser.add_argument("inputs", nargs="+", metavar="MAP", help=maps)
    add_output(parser, "FOLDER", "folder for the results (default: print counts, and write nothing)", required=False)
    add_definition(parser)
    add_group(parser, "where lesions are, and what that means", _REGIONS)
    add_group(parser, "how far to trust the maps", _TRUST)
    add_known_arguments(parser)
    add_maps(parser, {"--level N": LEVEL})
    work = add_run(parser, "count", workers="a scan each, or parts of one large zarr volume")
    add_written(work, _WRITTEN)
    add_options(work, _COUNT_OUTPUTS)
    add_group(parser, "results as DICOM (needs lesioncount[dicom])", _DICOM)
    add_quiet(work)


def run(options: argparse.Namespace) -> int:
    """Count, and print what happened."""
    if options.output is None:
        return _only_print(options)
    from lesioncount.runs import count_batch

    with run_arguments(options, doing="counting", what="scans") as told:
        _check_reviews(options)
        how = told | given(options, "regions", "members") | {"selection": selection_of(options, *_BESIDE)}
        settings = _settings(options) if options.reads is None else _with_reads(options, how)
        if options.known is None:
            result, learned = count_batch(options.inputs, options.output, settings=settings, **how), None
        else:
            result, learned = _count_known(options, settings, how)
    if not options.quiet:
        summary_of(result, shown=n_shown(options)).print()
        print_learned(learned, options.output / "calibration.json")
    _apply_reviews(result, options)
    write_page(result, options)
    if not options.quiet:
        _say_missing(result, options)
    return ended(result, options, table="counts.tsv")


# What belongs to maps, beside masks.
_BESIDE = ("images", "images_suffix", "regions_suffix")

# What is written, or is about what was written: it needs a folder.
_FOR_FOLDERS = (
    "known", "reviews", "reads", "members", "report", "write", "csv", "dicom_series", "dicom_type", "resume",
    "overwrite", "cluster", "ask", "listed",
)  # fmt: skip


def _only_print(options: argparse.Namespace) -> int:
    """Print the count of one map with its candidates, or a row for each of several; write nothing."""
    from lesioncount.results.count_warnings import in_general
    from lesioncount.runs import count_file, count_files

    if said := [name for name in _FOR_FOLDERS if getattr(options, name, None)]:
        name = {"listed": "list"}.get(said[0], said[0].replace("_", "-"))
        raise MapFileError(f"--{name} needs a folder for the results: -o FOLDER.")
    settings, selection = _settings(options), selection_of(options, *_BESIDE)
    where = given(options, "mask", "regions", "region_names", "within")
    how = {"protocol": settings.protocol, **settings.reading}
    level = how.pop("level", None)
    table = count_files(
        options.inputs,
        **how | where,
        calibration=settings.calibration,
        interval=options.interval,
        selection=selection,
        jobs=options.jobs,
    )
    one = table[0] if len(table.counted) == len(table) == 1 else None
    if one is None or settings.calibration is not None:
        print(table)
    if one is not None:
        where["mask"] = one.record.within
        print("" if settings.calibration is None else "Without the calibration: ", end="")
        print(count_file(one.path, **how | where, level=level).result)
    for row in table.failed:
        print(f"failed: {row.record.shown}: {row.error}", file=sys.stderr)
    warned: dict[str, list[Record]] = {}
    for row in table.counted:
        for warning in filter(settings.recorded.caveat.__ne__, row.warnings):  # the table says it
            warned.setdefault(in_general(warning), []).append(row.record)
    said = [_about(warning, records, len(table.counted)) for warning, records in warned.items()]
    for warning in said:
        print(f"warning: {warning}")
    return 1 if table.failed else 0


def _count_known(options: argparse.Namespace, settings: Settings, how: dict[str, Any]) -> tuple[Results, Learned]:
    """Learn from known counts, and count."""
    from lesioncount.assess.known_counts import count_known

    if options.calibration is not None:
        raise CalibrationError("--known learns a calibration, and --calibration has one. Leave one of them out.")
    kinds = None if options.candidates is None else (options.candidates,)
    return count_known(options.inputs, options.output, known_options(options), settings=settings, kinds=kinds, **how)


def _settings(options: argparse.Namespace) -> Settings:
    from lesioncount.results.region_settings import region_settings
    from lesioncount.runs import Settings

    fit = None
    if options.calibration is not None:
        from lesioncount.trust.fitting import CalibrationFit

        fit = CalibrationFit.load(options.calibration)
    fits = () if fit is None else (fit,)
    return Settings(
        calibration=fit,
        regions=region_settings(options.regions, options.region_names, options.within),
        dicom=_dicom(options),
        level=options.level,
        bids="bids" in options.write,
        save_existence="existence" in options.write,
        save_colours="colours" in options.write,
        spacing_mm=spacing_of(options),
        listed=_list_rule(options),
        **settings_of(options, fits),
    )


def _list_rule(options: argparse.Namespace) -> ListRule | None:
    if options.listed is None:
        return None
    from lesioncount.trust.fitting.lists import ListRule  # not at the top: fits are for some runs only

    return ListRule.parse(options.listed)


def _check_reviews(options: argparse.Namespace) -> None:
    """Raise if there are none, before anything is counted."""
    if options.reviews is not None:
        from lesioncount.assess.reviews.reviews import the_reader

        the_reader(options.reviews, options.reader)


def _apply_reviews(result: Results, options: argparse.Namespace) -> None:
    if options.reviews is not None:
        from lesioncount.assess.reviews.export import apply_reviews

        reviewed = apply_reviews(result, options.reviews, options.reader)
        if not options.quiet:
            print(reviewed)


def _with_reads(options: argparse.Namespace, how: dict[str, Any]) -> Settings:
    """The settings with what readers have counted."""
    from lesioncount.assess.another_reader import with_reads

    told = {name: how[name] for name in ("selection", "members")} | given(options, "scan_column", "count_column")
    told["suffix"] = options.truth_suffix
    return with_reads(_settings(options), options.reads, options.inputs, options.output, **told)


def _dicom(options: argparse.Namespace) -> DicomOutput | None:
    from lesioncount.runs import DicomOutput

    if not ("dicom" in options.write or options.dicom_series or options.dicom_type):
        return None
    return DicomOutput(options.dicom_type or "labelmap", options.dicom_series)


def _say_missing(result: Results, options: argparse.Namespace) -> None:
    """Name the scans that have no image, or in which the name pattern finds nobody."""
    from lesioncount.cohort.pairing import pair

    for chosen in dict.fromkeys(scan.map.file_format for scan in result.counted if scan.map is not None):
        if chosen.startswith("nnU-Net, "):
            print(f"note: {chosen}. It is the only label in dataset.json; --channel chooses another.")
    missing: dict[str, list[str]] = {}
    if options.name_pattern is not None:
        nobody = [scan.name for scan in result.scans if not scan.whose]
        missing["are not matched by the name pattern"] = nobody
    if options.images is not None:
        files = {scan.name: scan.files for scan in result.counted}
        found = pair(files, options.images, role="image", suffix=options.images_suffix, none_is_error=False)
        missing[f"have no image in {options.images}"] = [name for name in files if name not in found]
    for what, names in missing.items():
        if names:
            print(f"note: {len(names)} of {len(result.scans)} scans {what}: {listed(names)}")


def summary_of(result: Results, *, shown: int) -> Summary:
    """The counts, a row for each scan."""
    is_calibrated = result.calibration is not None
    kind = "conformal" if result.run.unlike else "guaranteed"
    interval = f"{kind} 90 %" if result.is_guaranteed else "90 % interval"
    expected = sum(scan.counted.best.count_mean for scan in result.counted)
    total = f"{expected:.1f} lesions expected in total{' (calibrated)' if is_calibrated else ''}"
    n, n_read = len(result.counted), sum(scan.counted.another is not None for scan in result.counted)
    promises = () if result.run.unlike else result.run.settings.promises.values()
    return Summary(
        ("scan", "candidates", "CC > 0.5", "mode", "median", "mean", interval),
        _NUMBERS,
        [_row(scan) for scan in result.counted[:shown]],
        n,
        f"{some(n, 'scan')} counted, {total}, {len(result.failed)} failed. Results: {result.out}",
        heading="Calibrated counts" if is_calibrated else "",
        answers={scan.shown: scan.answers for scan in result.counted if scan.answers},
        notes=[
            *(f"warning: {_about(warning, scans, n)}" for warning, scans in result.warnings.items()),
            *(f"warning: {one}" for one in (result.run.unlike,) if one),
            *(f"note: {one}" for one in (result.run.alike,) if one),
            *(f"Guaranteed intervals. {promise}" for promise in promises),
            *_list_note(result),
            *([f"What another reader would count, in {some(n_read, 'scan')}: counts.tsv."] if n_read else []),
        ],
    )


def _list_note(result: Results) -> list[str]:
    """What a list promises, and how long it is."""
    promise = result.run.settings.list_promise
    if not promise or not result.counted:
        return []
    marks = [row.on_list for record in result.records() for row in record.lesions]
    length = marks.count("yes") / len(result.counted)
    said = "These scans are unlike those of the calibration, so it promises nothing." if result.run.unlike else promise
    return [f"List: {length:.1f} candidates per scan (lesions.tsv). {said}"]


def _row(scan: Entry) -> tuple[str, ...]:
    of, count = scan.counted.candidates, scan.counted.best
    numbers = (of.n_candidates, of.cc_count, count.count_mode, count.count_median, f"{count.count_mean:.2f}")
    ends = scan.counted.guaranteed or (count.interval90_low, count.interval90_high)
    return scan.shown, *map(str, numbers), "{} to {}".format(*ends)


def _about(warning: str, scans: Sequence[Record], n_counted: int) -> str:
    """A warning about one scan with its numbers, or about several without."""
    if len(scans) == 1:
        own = next((text for text in scans[0].warnings if text.startswith(warning)), warning)
        return f"{scans[0].shown}: {own}"
    return f"{len(scans)} of {n_counted} scans: {warning}"
