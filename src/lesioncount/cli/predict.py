"""``lesioncount predict``: a trained network and images → probability maps."""

from __future__ import annotations

import argparse

from lesioncount.cli.options import Option, add_options, add_output, add_paths, add_rerun, given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = "Next: lesioncount count FOLDER -o COUNTS, or use --count. Needs lesioncount[train]."
    add_paths(parser, "checkpoint", "best.ckpt of a training")
    images = (
        "pictures or scans like those of the training: folders, files, patterns, or lists (.txt, a path in each line). "
        "Where each channel is a file of its own, names end as in the training"
    )
    add_paths(parser, "images", images, nargs="+")
    add_output(parser, "FOLDER", "folder for the maps")
    members: dict[str, Option] = {
        "--mc-dropout N": ("write N members, with Monte Carlo dropout", {"default": 0}),
        "--tta": "write a member for each flip of the images",
    }
    add_options(parser.add_mutually_exclusive_group(), members)
    add_options(parser, {"--count FOLDER": "also count the maps, and write counts and report here"})
    add_rerun(parser, seed_of="the dropout", overwrite="overwrite existing maps and counts")


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
    how = given(options, "mc_dropout", "tta", "seed", "overwrite")
    written = predict(options.checkpoint, options.images, options.output, **how)
    has_members = bool(options.mc_dropout or options.tta)
    if not options.quiet:
        print(f"{len(written)} {'members' if has_members else 'maps'} written to {options.output}")
    if options.count is None:
        return 0
    from lesioncount.report import write_report
    from lesioncount.runs import count_batch

    result = count_batch(written, options.count, members=has_members, overwrite=options.overwrite)
    page = write_report(result)
    if not options.quiet:
        print(f"Counts: {result.out}. Report: {page}")
    return 1 if result.failed else 0
