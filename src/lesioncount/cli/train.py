"""``lesioncount train``: a configuration → a trained network."""

from __future__ import annotations

import argparse

from lesioncount.cli.options import Option, add_options, add_output, add_quiet, at_least_zero, given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = (
        "For pictures or scans of your own, write a TOML file with images, and counts or masks, in [data]: see "
        "docs/networks.md. Writes best.ckpt, last.ckpt, config.json, scores.json, logs, and lists of your pictures in "
        "each part, such as test.txt. Needs lesioncount[train]."
    )
    parser.add_argument("config", metavar="CONFIG", help="a TOML file, or a preset: smoke, laptop, paper")
    add_output(parser, "FOLDER", "folder for checkpoints, scores and logs")
    seed: Option = ("use this seed instead of the configuration's", {"type": at_least_zero})
    add_options(parser, {"--seed N": seed})
    again: dict[str, Option] = {
        "--resume": "continue after the last finished epoch",
        "--overwrite": "start again, and replace an earlier training",
    }
    add_options(parser.add_mutually_exclusive_group(), again)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Train, and print the scores on the test scans."""
    from dataclasses import replace

    from lesioncount.learning.config import TrainingConfig
    from lesioncount.optional import optional

    config = TrainingConfig.load(options.config)
    if options.seed is not None:
        config = replace(config, run=replace(config.run, seed=options.seed))
    for module in ("torch", "lightning"):
        optional(module, "train", "Training")
    from lesioncount.learning.own_data import OwnData
    from lesioncount.learning.sources import data_of
    from lesioncount.learning.training import train

    data = data_of(config)
    if isinstance(data, OwnData) and not options.quiet:
        print(data)
        if data.advice:
            print(f"note: {data.advice}")
    how = given(options, "resume", "overwrite")
    scores = train(config, options.output, progress=not options.quiet, data=data, **how)
    if not options.quiet:
        for name, value in sorted(scores.items()):
            print(f"{name:<20} {value:.4f}")
        print(f"Written: {options.output}")
        if isinstance(data, OwnData):
            out, warning = options.output, data.warning(scores, config)
            print(
                f"WARNING: {warning}"
                if warning
                else f"Next: lesioncount predict {out / 'best.ckpt'} {out / 'test.txt'} -o maps/"
            )
    return 0
