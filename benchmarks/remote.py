"""A zarr volume in a bucket on this machine against the same bytes on its disk: `python benchmarks/remote.py`.

The bucket is moto in a process of its own. Runs take turns, and the ratio is that of the best of each; *server alone*
is how long the bucket takes to hand out all objects, 16 at once, to someone who does nothing with them. Then the same
volume is counted by the command, and all that it writes and prints is searched for the credentials. ``--side 256`` is
for a try. Needs moto, and lesioncount[remote].
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr

# What must not be in anything that is written or printed.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIABENCHMARKSECRET", "AWS_SECRET_ACCESS_KEY": "benchmarksecretkey"}

_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def bucket() -> Iterator[Any]:
    """A client of an empty bucket, whose credentials are in the environment; it ends with us."""
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip() if server.stdout else ""
        os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1", **CREDENTIALS}
        import boto3

        client = boto3.client("s3")
        client.create_bucket(Bucket="scans")
        yield client
    finally:
        server.communicate()


def draw(path: Path, side: int, chunk: int) -> Path:
    """Noise with lesions, in whole numbers, as networks' maps are often stored."""
    rng = np.random.default_rng(1)
    array = zarr.create_array(str(path), shape=(side,) * 3, chunks=(chunk,) * 3, dtype="u1")
    for begin in np.ndindex(*(side // chunk,) * 3):
        part = (rng.random((chunk,) * 3, dtype=np.float32) ** 8 * 25).astype(np.uint8)
        z, y, x = rng.integers(4, chunk - 4, 3)
        part[z - 2 : z + 2, y - 2 : y + 2, x - 2 : x + 2] = 200
        array[tuple(slice(i * chunk, (i + 1) * chunk) for i in begin)] = part
    return path


def upload(path: Path, client: Any) -> str:
    for file in path.rglob("*"):
        if file.is_file():
            client.put_object(Bucket="scans", Key=f"x.zarr/{file.relative_to(path)}", Body=file.read_bytes())
    return "s3://scans/x.zarr"


def seconds(address: str | Path) -> tuple[float, float]:
    """How long a count takes, and its mean."""
    from lesioncount.runs import count_file

    began = time.perf_counter()
    mean = count_file(address, scale=1 / 255).result.distribution.mean()
    return time.perf_counter() - began, mean


def server_seconds(address: str) -> float:
    """How long the bucket takes alone."""
    from lesioncount.files.remote_listing import objects_below
    from lesioncount.files.remote_objects import key_of, obstore, store_of
    from lesioncount.files.remote_path import RemotePath

    began = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        paths = objects_below(RemotePath.of(address))
        list(pool.map(lambda one: obstore().get(store_of(one), key_of(one)).bytes(), paths))
    return time.perf_counter() - began


def n_credentials(address: str, out: Path) -> int:
    """How often a credential is found in what the command writes and prints."""
    command = [sys.executable, "-m", "lesioncount", "count", address, "-o", str(out), "--scale", "1/255"]
    done = subprocess.run([*command, "--write=labels", "--report", "-v"], capture_output=True, check=True)
    files = [file.read_bytes() for file in out.rglob("*") if file.is_file()]
    texts = [done.stdout, done.stderr, *files]
    return sum(text.count(secret.encode()) for text in texts for secret in CREDENTIALS.values())


def measured(folder: Path, *, side: int, chunk: int, repeats: int) -> dict[str, Any]:
    with bucket() as client:
        here = draw(folder / "x.zarr", side, chunk)
        there = upload(here, client)
        times: dict[str, list[float]] = {"here, s": [], "there, s": [], "server alone, s": []}
        for _ in range(repeats):
            one, other = seconds(here), seconds(there)
            if one[1] != other[1]:
                raise SystemExit(f"The counts differ: {one[1]} and {other[1]}")
            for name, took in zip(times, (one[0], other[0], server_seconds(there)), strict=True):
                times[name].append(round(took, 3))
        stored = sum(file.stat().st_size for file in here.rglob("*") if file.is_file())
        return {
            "voxels": f"{side}³ in chunks of {chunk}³",
            "MB stored": stored // 10**6,
            "there / here": round(min(times["there, s"]) / min(times["here, s"]), 2),
            "credentials in outputs": n_credentials(there, folder / "out"),
            **times,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--chunk", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder), **vars(options)), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
