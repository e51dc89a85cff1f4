"""A server of reviews in a thread, and one in a process of its own, spoken to over real HTTP."""

import http.client
import json
import subprocess
import sys
import threading
from contextlib import contextmanager

from lesioncount.review.cohort import ReviewCohort
from lesioncount.review.server import ReviewServer


class Client:
    """A browser that has shown the token, or not."""

    def __init__(self, port, token=None):
        self.port, self.cookie = port, None
        if token is not None:
            status, headers, _ = self.raw("GET", f"/?token={token}")
            if status == 303:
                self.cookie = headers["set-cookie"].partition(";")[0]

    def raw(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        own = {"Host": f"127.0.0.1:{self.port}"}
        own |= {} if self.cookie is None else {"Cookie": self.cookie}
        own |= {} if body is None else {"Content-Type": "application/json"}
        try:
            connection.putrequest(method, path, skip_host=True)
            sent = own | (headers or {})
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None and "Transfer-Encoding" not in sent:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, content = self.raw("GET", path)
        return status, json.loads(content)

    def post(self, path, **body):
        status, _, content = self.raw("POST", path, json.dumps(body).encode())
        return status, json.loads(content)


@contextmanager
def serving(out, *, images=None, **options):
    """A server in a thread."""
    server = ReviewServer(ReviewCohort(out, images=images), **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


class ServerProcess:
    """``lesioncount review`` as a user starts it."""

    def __init__(self, out, *options):
        command = [sys.executable, "-m", "lesioncount", "review", str(out), "--no-browser", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = next((line.strip() for line in self.process.stdout if line.startswith("http://")), "")
        self.port = int(self.address.partition("127.0.0.1:")[2].partition("/")[0])

    def client(self):
        return Client(self.port, self.address.partition("token=")[2])

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=20)
