"""``lesioncount reproduce``: the experiments of the paper → tables, figures, and which of its claims hold."""

from __future__ import annotations

import argparse
from pathlib import Path

from lesioncount.cli.options import add_quiet, at_least_one, named_path, processes

# Default numbers of training seeds: fewer than three show no spread, which a smoke test does not need.
_SEEDS = {"smoke": 1}
_USUAL_SEEDS = 3

# Modules, and the extras of lesioncount that they come with.
_NEEDED = (("torch", "train"), ("lightning", "train"), ("matplotlib", "report"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = (
        "Experiments: threshold, calibration, uncertainty, multitask, lowdata, adversarial, which. What "
        "trainings leave is kept in FOLDER/cache, so that the same command resumes a run that was stopped. "
        "Example: lesioncount reproduce --preset smoke"
    )
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="experiments to run (default: all)")
    parser.add_argument(
        "--preset",
        default="laptop",
        help="size of the run: smoke (a minute), laptop (hours; default), evening (larger scans, longer trainings)",
    )
    parser.add_argument(
        "-o", "--output", type=named_path, metavar="FOLDER", help="folder for the results (default: reproduce-PRESET)"
    )
    parser.add_argument(
        "--data",
        action="append",
        metavar="NAME[=FOLDER]",
        help="synthetic (default), leaf=FOLDER with the coffee leaf photographs, nuclei=FOLDER with nuclei.npz, or "
        "lidc=FOLDER with a detector's candidates and readings (experiment which only); repeat for several",
    )
    parser.add_argument(
        "--seeds", type=at_least_one, metavar="N", help="number of training seeds (default: 3; smoke: 1)"
    )
    parser.add_argument("-j", "--jobs", type=processes, metavar="N", help="number of processes (default: one per core)")
    parser.add_argument(
        "--cache",
        type=named_path,
        metavar="FOLDER",
        help="folder for what trainings leave: small files, and networks (default: cache in the folder of results)",
    )
    parser.add_argument(
        "--report",
        type=named_path,
        metavar="FOLDER",
        help="run nothing, and only write the page of the results in FOLDER",
    )
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Run experiments, write the page, and print the verdicts."""
    from lesioncount.optional import optional

    for module, extra in _NEEDED:
        if options.report is None or extra == "report":
            optional(module, extra, "Reproducing the paper")
    from lesioncount.folder.output import OutputFolder

    out = _folder(options) if options.report is None else options.report
    files = OutputFolder(out)
    files.check(("reproduce.html", "claims.md"))  # not after hours of work
    if options.report is None:
        _run_experiments(options)
    from lesioncount_reproduction.experiments.result import load_results
    from lesioncount_reproduction.experiments.results_page import write_page
    from lesioncount_reproduction.experiments.verdicts import claims_table, summary_table, verdict_lines

    results = load_results(out)
    with files.alone():
        page = write_page(out, results)
        files.write_text("claims.md", "\n".join(of(results).to_markdown() for of in (summary_table, claims_table)))
    if not options.quiet:
        print("\n".join(verdict_lines(results)))
        print(f"Written: {page}")
    return 0


def _run_experiments(options: argparse.Namespace) -> None:
    from lesioncount_reproduction.experiments.reproduce import reproduce

    reproduce(
        _folder(options),
        experiments=options.experiments,
        preset=options.preset,
        data=_data(options.data or ["synthetic"]),
        n_seeds=options.seeds or _SEEDS.get(options.preset, _USUAL_SEEDS),
        jobs=options.jobs or _n_cores(),
        cache=options.cache,
        report=(lambda _: None) if options.quiet else lambda line: print(line, flush=True),
    )


def _n_cores() -> int:
    import os

    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _folder(options: argparse.Namespace) -> Path:
    folder: Path = options.output or Path(f"reproduce-{options.preset}")
    return folder


def _data(given: list[str]) -> dict[str, str]:
    from lesioncount.errors import ConfigError

    parted = [one.partition("=") for one in given]
    for name, _, path in parted:
        if (name == "synthetic") == bool(path):
            wanted = f"--data {name}=FOLDER" if name != "synthetic" else "--data synthetic, without a folder"
            raise ConfigError(f"Expected {wanted}.")
    found = {name: path for name, _, path in parted}
    if len(found) < len(given):
        raise ConfigError(f"Expected each data set once, but got {', '.join(given)}.")
    return found
