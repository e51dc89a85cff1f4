"""``lesioncount predict``: a trained network and images → probability maps."""

from __future__ import annotations

import argparse

from lesioncount.cli.map_arguments import at_least_zero, named_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.set_defaults(run=run)
    parser.epilog = "Next: lesioncount count FOLDER -o COUNTS, or use --count. Needs lesioncount[train]."
    parser.add_argument("checkpoint", type=named_path, metavar="CHECKPOINT", help="best.ckpt of a training")
    parser.add_argument(
        "images",
        type=named_path,
        nargs="+",
        metavar="IMAGES",
        help="pictures or scans like those of the training: folders, files, patterns, or lists (.txt, a path in each "
        "line). Where each channel is a file of its own, names end as in the training",
    )
    parser.add_argument("-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the maps")
    members = parser.add_mutually_exclusive_group()
    members.add_argument(
        "--mc-dropout", type=int, default=0, metavar="N", help="write N members, with Monte Carlo dropout"
    )
    members.add_argument("--tta", action="store_true", help="write a member for each flip of the images")
    parser.add_argument(
        "--count", type=named_path, metavar="FOLDER", help="also count the maps, and write counts and report here"
    )
    parser.add_argument("--seed", type=at_least_zero, default=0, metavar="N", help="seed of the dropout (default: 0)")
    parser.add_argument("--overwrite", action="store_true", help="overwrite existing maps and counts")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")


def run(options: argparse.Namespace) -> int:
    """Predict, and count the maps if asked to."""
    from lesioncount.errors import MapFileError
    from lesioncount.optional import optional

    if not options.checkpoint.exists():  # said at once: torch takes its time
        raise MapFileError(f"There is no checkpoint {options.checkpoint}.")
    for module in ("torch", "monai"):
        optional(module, "train", "Predicting")
    from lesioncount.learning.prediction import predict

    if options.count is not None:
        from lesioncount.report import check_can_report

        check_can_report()  # before anything is predicted
    if options.count is not None and (options.count / "run.json").exists() and not options.overwrite:
        raise MapFileError(f"{options.count} holds counts. Choose another folder, or overwrite it (--overwrite).")
    written = predict(
        options.checkpoint,
        options.images,
        options.output,
        mc_dropout=options.mc_dropout,
        tta=options.tta,
        seed=options.seed,
        overwrite=options.overwrite,
    )
    if not options.quiet:
        print(
            f"{len(written)} {'members' if options.mc_dropout or options.tta else 'maps'} written to {options.output}"
        )
    if options.count is None:
        return 0
    from lesioncount.report import write_report
    from lesioncount.runs import count_batch

    has_members = bool(options.mc_dropout or options.tta)
    result = count_batch(written, options.count, members=has_members, overwrite=options.overwrite)
    page = write_report(result)
    if not options.quiet:
        print(f"Counts: {result.out}. Report: {page}")
    return 1 if result.failed else 0
