"""Experiments and data sets → results in a folder: everything that the command line asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

from lesioncount.errors import ConfigError
from lesioncount.folder.output import OutputFolder
from lesioncount_reproduction.experiments import (
    adversarial,
    calibration,
    lowdata,
    multitask,
    threshold,
    uncertainty,
    which,
)
from lesioncount_reproduction.experiments.jobs import one_thread
from lesioncount_reproduction.experiments.presets import recipe_of
from lesioncount_reproduction.experiments.result import Result, names_of
from lesioncount_reproduction.experiments.scheduling import Job, run_jobs
from lesioncount_reproduction.experiments.study import Study

EXPERIMENTS: dict[str, ModuleType] = {
    "threshold": threshold,
    "calibration": calibration,
    "uncertainty": uncertainty,
    "multitask": multitask,
    "lowdata": lowdata,
    "adversarial": adversarial,
    "which": which,
}


def reproduce(
    out: Path,
    /,
    *,
    experiments: Sequence[str] = (),
    preset: str = "laptop",
    data: dict[str, str] | None = None,
    n_seeds: int = 3,
    jobs: int = 1,
    cache: Path | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Run experiments of the paper, and write what they found.

    Parameters
    ----------
    out : Path
        Folder of results: JSON and tables per experiment, and figures. Only earlier results are replaced.
    experiments : sequence of str
        Of "threshold", "calibration", "uncertainty", "multitask", "lowdata", "adversarial" and "which". Default: all
        that make sense on a data set.
    preset : str, default "laptop"
        How large: "smoke", "laptop" or "evening".
    data : dict, optional
        Data sets and where their files are: "synthetic" needs none, "leaf" the folder of photographs, "nuclei" that of
        the images, "lidc" that of the tables of a detector and its readers (ways to count only). Default: the
        synthetic cohort.
    n_seeds : int, default 3
        Number of training seeds.
    jobs : int, default 1
        Number of processes that train and attack, each with one thread.
    cache : Path, optional
        Folder of trained networks and predictions, which are reused. Default: ``cache`` in ``out``.
    report : callable, optional
        Called with a line of text for everything that is done.

    Returns
    -------
    list of Result
    """
    chosen = checked_experiments(experiments)
    if n_seeds < 1:
        raise ConfigError(f"Expected at least 1 seed, but got {n_seeds}.")
    kept = out / "cache" if cache is None else cache
    studies = [
        Study(name, preset, recipe_of(preset, name, path), tuple(range(n_seeds)), kept)
        for name, path in (data or {"synthetic": ""}).items()
    ]
    for study in studies:
        if not any(makes_sense(study, name) for name in chosen):
            possible = [name for name in EXPERIMENTS if makes_sense(study, name)]
            several = len(possible) > 1
            raise ConfigError(
                f"Of {study.data_set} there {'are' if several else 'is'} only the experiment{'s' if several else ''} "
                f"{', '.join(possible)}."
            )
    # Before hours of work, after which it could not be written.
    OutputFolder(out).check(
        file
        for study in studies
        for name in chosen
        if makes_sense(study, name)
        for file in names_of(study.data_set, name)
    )
    # What is needed may depend on what was found: a head whose score is still falling is trained for longer.
    while wanted := [job for job in _jobs(studies, chosen) if not job.is_done(kept)]:
        run_jobs(wanted, kept, n_processes=jobs, prepare=one_thread, report=report)
    results = []
    for study in studies:
        for name in (name for name in chosen if makes_sense(study, name)):
            result: Result = EXPERIMENTS[name].run(study)
            result.save(out)
            report(f"{name}, {study.data_set}: written")
            results.append(result)
    return results


def makes_sense(study: Study, experiment: str) -> bool:
    """Whether an experiment says anything on a data set.

    A tenth of 125 images is too few to learn from, nuclei are too many, and of a detector there are only scores.
    """
    return not (
        (experiment != "which" and study.recipe.data.source == "lidc")
        or (experiment == "adversarial" and study.recipe.attack is None)
        or (experiment == "lowdata" and study.recipe.low_data_epochs == 0)
    )


def checked_experiments(names: Sequence[str]) -> list[str]:
    """Names of experiments, in the order of the paper."""
    for name in names:
        if name not in EXPERIMENTS:
            raise ConfigError(f"{name!r} is not an experiment. Choose from {', '.join(EXPERIMENTS)}.")
    return [name for name in EXPERIMENTS if name in names or not names]


def _jobs(studies: Iterable[Study], experiments: Sequence[str]) -> list[Job]:
    """All jobs, first those of the first seed."""
    found = [
        (study.seeds.index(seed), job)
        for study in studies
        for name in experiments
        if makes_sense(study, name)
        for job in EXPERIMENTS[name].needs(study)
        for seed in (job.arm.config.run.seed,)
    ]
    return [job for _, job in sorted(found, key=lambda one: one[0])]
