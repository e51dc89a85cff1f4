"""A server of `lesioncount review` in a process of its own, as users start it."""

import json
import subprocess
import sys


class Server:
    def __init__(self, out, *options):
        command = [sys.executable, "-m", "lesioncount", "review", str(out), "--no-browser", *map(str, options)]
        self.out = out
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = iter(self.process.stdout.readline, "")
        self.address = next((line.strip() for line in lines if line.startswith("http://")), None)
        assert self.address, "the server printed no address"

    def kill(self):
        """End it as a crash would, with SIGKILL."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def journal(self, reader):
        """What is on disk of a reader."""
        path = self.out / "reviews" / f"{reader}.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
