"""``python -m lesioncount`` is the command ``lesioncount``."""

import sys

from lesioncount.cli import main

if __name__ == "__main__":
    sys.exit(main())
