"""The options of ``lesioncount count`` that say where to count, and what to ask."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lesioncount.cli.map_arguments import named_path

if TYPE_CHECKING:
    from lesioncount.questions import Question


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    where = parser.add_argument_group("where lesions are, and what that means")
    where.add_argument(
        "--regions",
        type=named_path,
        metavar="FILE|FOLDER|PATTERN",
        help="count in each region of this label map, too, on the grid of the maps; in a folder, that of the same name "
        "or BIDS entities as the map, or of the same participant; a pattern is such as "
        "'regions/{participant}_{session}_dseg.nii.gz'",
    )
    where.add_argument(
        "--region-names",
        type=named_path,
        metavar="TABLE",
        help="what labels are called: a table with the columns index and name, as dseg.tsv in BIDS (default: by their "
        "numbers)",
    )
    where.add_argument(
        "--regions-suffix",
        default="",
        metavar="TEXT",
        help="what the name of a label map adds to that of its map, or has in place of its last part, such as _dseg",
    )
    where.add_argument(
        "--within",
        action="append",
        default=[],
        metavar="DISTANCE",
        help="a region of its own by distance: 'periventricular = ventricles <= 3mm' holds candidates of which any "
        "voxel comes so near. May be repeated",
    )
    add_ask(
        where,
        "the probability that this is so, such as 'count >= 9' or 'periventricular >= 1 and juxtacortical >= 1', or "
        "the name of a criterion (lesioncount questions lists them). May be repeated",
    )


def add_ask(group: argparse._ArgumentGroup, help: str) -> None:  # noqa: A002 - as argparse calls it
    """Add the option that asks."""
    group.add_argument("--ask", action="append", default=[], metavar="QUESTION", help=help)


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """What they say, as fields of `Settings`."""
    from lesioncount.results.region_settings import region_settings

    found = region_settings(options.regions, options.region_names, options.within)
    return {"regions": found, "questions": questions_of(options.ask)}


def questions_of(texts: list[str]) -> tuple[Question, ...]:
    """What is asked, each question once."""
    from lesioncount.questions import Question

    asked = [Question.asked(text) for text in texts]
    # Criteria of two names may ask the same.
    return tuple({(question.name, question): question for question in asked}.values())
