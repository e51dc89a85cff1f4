"""A zarr volume in a bucket on this machine against the same bytes on its disk: `python benchmarks/remote.py`.

The bucket is moto in a process of its own. Runs take turns, and the ratio is that of the best of each. Needs moto, and
lesioncount[remote].
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import zarr

_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def volume(path: Path, side: int, chunk: int) -> Path:
    """Noise with lesions, in whole numbers, as networks' maps are often stored."""
    rng = np.random.default_rng(1)
    array = zarr.create_array(str(path), shape=(side,) * 3, chunks=(chunk,) * 3, dtype="u1")
    for begin in range(0, side, chunk):
        part = (rng.random((chunk, side, side), dtype=np.float32) ** 8 * 25).astype(np.uint8)
        for z, y, x in rng.integers(4, (chunk - 4, side - 4, side - 4), (40, 3)):
            part[z - 2 : z + 2, y - 2 : y + 2, x - 2 : x + 2] = 200
        array[begin : begin + chunk] = part
    return path


def upload(path: Path, client: Any) -> str:
    client.create_bucket(Bucket="scans")
    for file in path.rglob("*"):
        if file.is_file():
            client.put_object(Bucket="scans", Key=f"x.zarr/{file.relative_to(path)}", Body=file.read_bytes())
    return "s3://scans/x.zarr"


def seconds(address: str | Path) -> tuple[float, float]:
    from lesioncount.runs import count_file

    began = time.perf_counter()
    mean = count_file(address, scale=1 / 255).result.distribution.mean()
    return time.perf_counter() - began, mean


def server_seconds(address: str) -> float:
    """How long the server takes to hand out all objects, 16 at once, to someone who does nothing with them."""
    from concurrent.futures import ThreadPoolExecutor

    from lesioncount.files.remote_listing import objects_below
    from lesioncount.files.remote_objects import key_of, obstore, store_of
    from lesioncount.files.remote_path import RemotePath

    began = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        list(
            pool.map(
                lambda one: obstore().get(store_of(one), key_of(one)).bytes(), objects_below(RemotePath.of(address))
            )
        )
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--chunk", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip() if server.stdout else ""
        os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1"}
        os.environ |= {"AWS_ACCESS_KEY_ID": "here", "AWS_SECRET_ACCESS_KEY": "here"}
        import boto3

        with tempfile.TemporaryDirectory() as folder:
            here = volume(Path(folder) / "x.zarr", options.side, options.chunk)
            there = upload(here, boto3.client("s3"))
            stored = sum(file.stat().st_size for file in here.rglob("*") if file.is_file())
            times: dict[str, list[float]] = {"here": [], "there": [], "server alone": []}
            for _ in range(options.repeats):
                one, other = seconds(here), seconds(there)
                if one[1] != other[1]:
                    raise SystemExit(f"The counts differ: {one[1]} and {other[1]}")
                times["here"].append(one[0])
                times["there"].append(other[0])
                times["server alone"].append(server_seconds(there))
            best = {place: min(found) for place, found in times.items()}
            ratio = best["there"] / best["here"]
            print(f"{options.side}³ in chunks of {options.chunk}³, {stored >> 20} MB: {ratio:.2f}")
            print({place: [round(one, 3) for one in found] for place, found in times.items()})
    finally:
        server.stdin.close() if server.stdin else None
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
