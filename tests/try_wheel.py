"""Try an installed wheel as a user would: import it, ask for its version, count a sample. Without a compiler.

With the name of a folder, the wheels in it are looked at for their size.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import lesioncount

LARGEST = 3_000_000  # bytes of a wheel, without the network that is a sample
NETWORK = "lesioncount/samples/network.ckpt"


def bytes_of(wheel: Path) -> int:
    """The size of a wheel without the sample."""
    with zipfile.ZipFile(wheel) as archive:
        return wheel.stat().st_size - archive.getinfo(NETWORK).compress_size


def lesioncount_prints(*arguments: str) -> str:
    """What a command prints; no compiler is at hand while it runs."""
    environment = {**os.environ, "CC": "none", "CXX": "none"}
    command = [sys.executable, "-m", "lesioncount", *arguments]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """End with an error unless all of it works."""
    sample = Path(lesioncount.__file__).parent / "samples" / "new"
    if lesioncount_prints("--version").split() != ["lesioncount", lesioncount.__version__]:
        raise SystemExit("the command has another version than the package")
    here = json.loads(lesioncount_prints("info", "--json"))
    with tempfile.TemporaryDirectory() as folder:
        lesioncount_prints("count", str(sample), "-o", folder)
        rows = (Path(folder) / "counts.tsv").read_text("utf-8").splitlines()[1:]
    if len(rows) != len(list(sample.iterdir())):
        raise SystemExit(f"{len(rows)} of the maps in {sample.name} were counted")
    for wheel in (one for folder in sys.argv[1:] for one in Path(folder).glob("*.whl")):
        print(
            f"{wheel.name}: {bytes_of(wheel):,} bytes, and {wheel.stat().st_size - bytes_of(wheel):,} for the network"
        )
        if bytes_of(wheel) > LARGEST:
            raise SystemExit(f"expected at most {LARGEST:,} bytes")
    print(
        f"lesioncount {here['lesioncount']} on {here['system']}, {here['machine']}: {len(rows)} maps, {here['vectors']}"
    )


if __name__ == "__main__":
    main()
