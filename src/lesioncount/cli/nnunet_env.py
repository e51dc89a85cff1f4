"""``lesioncount nnunet-env``: the line that lets nnU-Net find the trainer."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from lesioncount.integrations import nnunet

VARIABLE = "nnUNet_extTrainer"

_HELP = f"""\
nnU-Net looks trainers up by name, when it trains and when it predicts, in the folders of
the environment variable {VARIABLE}. This command prints the line that sets it:

    eval "$(lesioncount nnunet-env)"
    nnUNetv2_train DATASET 3d_fullres 0 -tr nnUNetTrainerLesionCount
    nnUNetv2_predict -d DATASET -c 3d_fullres -tr nnUNetTrainerLesionCount \\
        -i IMAGES -o PREDICTIONS --save_probabilities
    lesioncount count PREDICTIONS -o COUNTS --channel 1

Folders that the variable holds already are kept. lesioncount must be installed where nnU-Net is.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options: there are none."""
    parser.epilog = _HELP
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def run(_: argparse.Namespace) -> int:
    """Print the line; what else there is to say goes to stderr, for the line is there to be evaluated."""
    before = [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder.strip()]
    folders = with_trainer_folder(before)
    print(f"export {VARIABLE}={shlex.quote(os.pathsep.join(folders))}")
    if others := folders[:-1]:
        print(f"lesioncount: {VARIABLE} was set: nnU-Net searches {', '.join(others)} first.", file=sys.stderr)
    if find_spec("nnunetv2") is None:
        print(
            "lesioncount: nnunetv2 is not installed in this environment. Install lesioncount in the one where it is, "
            "and run this command there.",
            file=sys.stderr,
        )
    return 0


def with_trainer_folder(folders: list[str]) -> list[str]:
    """These folders, and last the one that holds the trainer, which is in the list once."""
    ours = Path(str(nnunet.__file__)).resolve().parent
    return [folder for folder in folders if Path(folder).resolve() != ours] + [str(ours)]
