"""``lesioncount review``: a page on this machine to decide on candidates."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from lesioncount.cli.map_arguments import IMAGES_SUFFIX
from lesioncount.cli.options import Option, add_group, given
from lesioncount.cli.printing import some
from lesioncount.cli.truth import add_results
from lesioncount.optional import optional

# Of ports of the network.
_MOST_PORT = 65_535


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or not 0 <= int(text) <= _MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port, from 0 to {_MOST_PORT}")
    return int(text)


_SHOWN: dict[str, Option] = {
    "--images FOLDER|PATTERN": "the images that the maps were made from: a folder, in which they have the names or "
    "BIDS entities of the maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz' (default: the maps "
    "alone)",
    "--images-suffix TEXT": IMAGES_SUFFIX,
    "--blinded": "hide what the network says: probabilities, outlines and counts",
    "--show-others": "show readers each other's decisions",
    "--order {telling,random,run}": (
        "of the scans: the most telling first; at random, for reviews that calibrate; or as they were counted "
        "(default: telling)",
        {"default": "telling"},
    ),
}

_FOR: dict[str, Option] = {
    "--for {calibration}": (
        "draw scans at random, as many as a calibration needs, and show how many scans and lesions are missing (in "
        "place of --order)",
        {"dest": "order", "default": argparse.SUPPRESS},
    ),
}

_PAGE: dict[str, Option] = {
    "--reader NAME": "who decides (default: the page asks)",
    "--port N": ("of the page (default: one that is free)", {"type": _port, "default": 0}),
    "--no-browser": "print the address, but do not open it",
}

_DECIDED: dict[str, Option] = {
    "--export": "open no page, but write reviewed_counts.tsv, reviewed_lesions.tsv, the agreement of readers and label "
    "maps of what was accepted",
    "--no-label-maps": "with --export: tables only; no map is read",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.epilog = (
        "Each decision is written at once to RESULTS/reviews/READER.jsonl. The page is for this machine only. Needs "
        "lesioncount[review]."
    )
    add_results(parser, wrote="count wrote")
    add_group(parser, "what is shown", {**_FOR, **_SHOWN})
    add_group(parser, "the page", _PAGE)
    add_group(parser, "what was decided", _DECIDED)


def run(options: argparse.Namespace) -> int:
    """Serve the page until interrupted, or write what was decided."""
    from lesioncount.assess.reviews.journals import notes_on_journals

    for note in notes_on_journals(options.results):
        print(f"note: {note}", file=sys.stderr)
    if options.export:
        return _export(options)
    for package in ("starlette", "uvicorn"):
        optional(package, "review", "The page for review")
    from lesioncount.review.cohort import ReviewCohort
    from lesioncount.review.page_files import NOT_BUILT, has_viewer
    from lesioncount.review.server import ReviewServer

    cohort = ReviewCohort(options.results, **given(options, "images", "images_suffix"))
    server = ReviewServer(cohort, **given(options, "port", "reader", "blinded", "show_others", "order"))
    if not has_viewer():
        print(f"note: {NOT_BUILT}", file=sys.stderr)
    scans = some(len(cohort.scans), "scan")
    print(f"{scans} to review. Open this address, on this machine only; Ctrl-C ends it:")
    print(server.address, flush=True)
    if not options.no_browser:
        _open(server.address)
    with suppress(KeyboardInterrupt):
        server.run()
    print(f"Stopped. All decisions are in {cohort.out / 'reviews'}.")
    return 0


def _export(options: argparse.Namespace) -> int:
    from lesioncount.assess.reviews.export import export_reviews
    from lesioncount.results.results import read_counted

    files, notes = export_reviews(read_counted(options.results), label_maps=not options.no_label_maps)
    tables = [name for name in files if name.endswith(".tsv")]
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    n_maps = len(files) - len(tables)
    maps = f", and {some(n_maps, 'label map')} in reviews/" if n_maps else ""
    print(f"Written in {options.results}: {', '.join(tables)}{maps}")
    return 1 if notes else 0


def _open(address: str) -> None:
    import webbrowser

    with suppress(webbrowser.Error):
        webbrowser.open(address)
