"""Pictures with bright dots, whose number is known: what a newcomer may have."""

import csv

import numpy as np


def dots(n, rng, shape=(32, 32)):
    """A picture with so many dots that do not touch, and where they are."""
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    picture, mask, places = rng.normal(60, 8, shape), np.zeros(shape, bool), []
    while len(places) < n:
        place = rng.uniform(4, np.array(shape) - 4)
        if all(np.linalg.norm(place - other) > 9 for other in places):
            places.append(place)
    for place in places:
        apart = np.linalg.norm(grid - place, axis=-1)
        picture += 120 * np.exp(-((apart / 3) ** 4))
        mask |= apart < 3
    return np.clip(picture, 0, 255).astype(np.uint8), mask


def write_dots(folder, n, *, seed=0, shape=(32, 32), masks=False, most=4):
    """PNG files and a table of counts, whose names have the endings of the files."""
    from PIL import Image  # not at the top: this file is looked through for doctests, wherever tests run

    rng = np.random.default_rng(seed)
    (folder / "pictures").mkdir(parents=True)
    (folder / "masks").mkdir()
    rows = [("scan", "count")]
    for number in range(n):
        picture, mask = dots(number % most, rng, shape)
        Image.fromarray(picture).save(folder / "pictures" / f"dish{number:02}.png")
        if masks:
            Image.fromarray(mask.astype(np.uint8) * 255).save(folder / "masks" / f"dish{number:02}.png")
        rows.append((f"dish{number:02}.png", number % most))
    with (folder / "counts.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder
