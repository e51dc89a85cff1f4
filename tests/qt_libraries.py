"""What Qt needs of a Linux system, for napari: without it, Qt ends the process without a word."""

import ctypes
import os
import shutil
import sys

# Libraries by the Debian package that has them.
PACKAGES = {
    "libegl1": "libEGL.so.1",
    "libgl1": "libGL.so.1",
    "libopengl0": "libOpenGL.so.0",
    "libdbus-1-3": "libdbus-1.so.3",
    "libfontconfig1": "libfontconfig.so.1",
    "libglib2.0-0": "libglib-2.0.so.0",
    "libxkbcommon-x11-0": "libxkbcommon-x11.so.0",
    "libxcb-cursor0": "libxcb-cursor.so.0",
    "libxcb-icccm4": "libxcb-icccm.so.4",
    "libxcb-image0": "libxcb-image.so.0",
    "libxcb-keysyms1": "libxcb-keysyms.so.1",
    "libxcb-randr0": "libxcb-randr.so.0",
    "libxcb-render-util0": "libxcb-render-util.so.0",
    "libxcb-shape0": "libxcb-shape.so.0",
    "libxcb-xkb1": "libxcb-xkb.so.1",
}


def missing():
    """The packages that are not there; without a screen, also the one that shows windows in memory."""
    screen = [] if os.environ.get("DISPLAY") or shutil.which("xvfb-run") else ["xvfb"]
    return [*(name for name, library in PACKAGES.items() if not _loads(library)), *screen]


def _loads(library):
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


if __name__ == "__main__" and sys.platform == "linux" and (names := missing()):
    sys.exit(f"napari needs packages of the system that are not here: apt-get install {' '.join(names)}")
