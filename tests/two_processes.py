"""Run a function of a test module in two processes that can talk to each other, as distributed training does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import importlib.util, json, os, sys
import torch
torch.set_num_threads(1)
module, function, meeting, rank = sys.argv[1:]
torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=int(rank), world_size=2)
spec = importlib.util.spec_from_file_location("two", module)
loaded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loaded)
print(json.dumps(getattr(loaded, function)(int(rank))), flush=True)
torch.distributed.barrier()
os._exit(0)  # closing connections one by one may fail on a busy machine, after all is done
"""


def in_two_processes(module: str, function: str, folder: Path) -> list[object]:
    """What a function of a file, called with its rank, gives in each of two processes."""
    # Fresh processes: forks of one in which torch has already started threads would wait for them for ever.
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, module, function, str(folder / "meeting"), str(rank)],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
            text=True,
        )
        for rank in range(2)
    ]
    try:
        printed = [worker.communicate(timeout=180)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0]
    return [json.loads(text.splitlines()[-1]) for text in printed]
