"""``lesioncount review``: a page on this machine to decide on candidates."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from lesioncount.cli.map_arguments import named_path
from lesioncount.optional import optional

# Of scans; what each means is in `assess.reviews.progress`.
ORDERS = ("telling", "random", "run")

# Of ports of the network.
_MOST_PORT = 65_535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run)
    parser.epilog = (
        "Each decision is written at once to RESULTS/reviews/READER.jsonl. The page is for this machine only. Needs "
        "lesioncount[review]."
    )
    parser.add_argument("results", type=named_path, metavar="RESULTS", help="folder that lesioncount count wrote")
    shown = parser.add_argument_group("what is shown")
    shown.add_argument(
        "--images",
        type=named_path,
        metavar="FOLDER|PATTERN",
        help="the images that the maps were made from: a folder, in which they have the names or BIDS entities of the "
        "maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz' (default: the maps alone)",
    )
    shown.add_argument(
        "--images-suffix",
        default="",
        metavar="TEXT",
        help="what the name of an image adds to that of its map, or has in place of its last part, such as _FLAIR",
    )
    shown.add_argument(
        "--blinded", action="store_true", help="hide what the network says: probabilities, outlines and counts"
    )
    shown.add_argument("--show-others", action="store_true", help="show readers each other's decisions")
    shown.add_argument(
        "--order",
        choices=ORDERS,
        default=ORDERS[0],
        help="of the scans: the most telling first; at random, for reviews that calibrate; or as they were counted "
        "(default: telling)",
    )
    page = parser.add_argument_group("the page")
    page.add_argument("--reader", metavar="NAME", help="who decides (default: the page asks)")
    page.add_argument("--port", type=_port, default=0, metavar="N", help="of the page (default: one that is free)")
    page.add_argument("--no-browser", action="store_true", help="print the address, but do not open it")
    out = parser.add_argument_group("what was decided")
    out.add_argument(
        "--export",
        action="store_true",
        help="open no page, but write reviewed_counts.tsv, reviewed_lesions.tsv, the agreement of readers and label "
        "maps of what was accepted",
    )
    out.add_argument("--no-label-maps", action="store_true", help="with --export: tables only; no map is read")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")


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

    cohort = ReviewCohort(options.results, images=options.images, images_suffix=options.images_suffix)
    server = ReviewServer(
        cohort,
        port=options.port,
        reader=options.reader,
        blinded=options.blinded,
        show_others=options.show_others,
        order=options.order,
    )
    if not has_viewer():
        print(f"note: {NOT_BUILT}", file=sys.stderr)
    n = len(cohort.scans)
    print(f"{n} scan{'' if n == 1 else 's'} to review. Open this address, on this machine only; Ctrl-C ends it:")
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
    maps = f", and {n_maps} label map{'' if n_maps == 1 else 's'} in reviews/" if n_maps else ""
    print(f"Written in {options.results}: {', '.join(tables)}{maps}")
    return 1 if notes else 0


def _open(address: str) -> None:
    import webbrowser

    with suppress(webbrowser.Error):
        webbrowser.open(address)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or not 0 <= int(text) <= _MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port, from 0 to {_MOST_PORT}")
    return int(text)
