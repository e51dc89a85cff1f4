"""Work that other processes can import, some of which ends them."""

import os
import time
from pathlib import Path


def twice(number):
    return 2 * number


def deadly(number):
    time.sleep(0.02)
    if number == 7:
        os._exit(3)
    return 2 * number


def deadly_once(number_and_folder):
    number, folder = number_and_folder
    mark = Path(folder) / "died"
    if number == 3 and not mark.exists():
        mark.write_text("once")
        os._exit(3)
    return 2 * number


def wrong(number):
    if number == 1:
        raise ValueError("one is wrong")
    return number


def touch_for_ever(path):
    while True:
        Path(path).write_text(str(time.time()))
        time.sleep(0.05)
