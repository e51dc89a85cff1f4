"""A bucket and a web server on this machine, which stand for those elsewhere and end with the tests."""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

# What must never be in anything that is written or printed.
KEY_ID, KEY, SIGNATURE = "AKIAKEYIDSECRET", "verysecretkey", "signedsecret"


class LocalServer:
    """Files in a folder, over http; paths may be broken on purpose.

    Attributes
    ----------
    broken : dict of str to int or str
        What becomes of a path: a status such as 403, or ``cut``: half of it, and the connection is closed.
    tags : bool
        Whether answers have an ETag; else there is not even a date.
    requests : list of str
        Method and address, of all that was asked for.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.broken, self.tags, self.requests = folder, {}, True, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.requests.append(f"{self.command} {self.path}")
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # who asks may have had enough
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(handler.path).path).lstrip("/")
        how, file = self.broken.get(path), self.folder / path
        status = how if isinstance(how, int) else 200 if file.is_file() else 404
        content = file.read_bytes() if status == 200 else f"told by the server: {handler.path}".encode()
        handler.send_response(status)
        if self.tags and status == 200:
            handler.send_header("ETag", f'"{hash(content) & 0xFFFFFFFF:x}"')
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: len(content) // 2] if how == "cut" else content)
        if how == "cut":
            handler.close_connection = True


@contextmanager
def local_server(folder: Path) -> Iterator[LocalServer]:
    """Serve a folder."""
    server = LocalServer(folder)
    threading.Thread(target=server.server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()


class LocalBucket:
    """The bucket ``scans``."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address

    def put(self, key: str, content: bytes) -> str:
        """Store an object; its address."""
        self.client.put_object(Bucket="scans", Key=key, Body=content)
        return f"s3://scans/{key}"

    def put_tree(self, folder: Path, key: str) -> str:
        """Store all files of a folder."""
        for file in folder.rglob("*"):
            if file.is_file():
                self.put(f"{key}/{file.relative_to(folder).as_posix()}", file.read_bytes())
        return f"s3://scans/{key}"

    def open_to_all(self) -> None:
        """Let everybody read what is there now."""
        self.client.put_bucket_acl(Bucket="scans", ACL="public-read")
        for one in self.client.list_objects_v2(Bucket="scans")["Contents"]:
            self.client.put_object_acl(Bucket="scans", Key=one["Key"], ACL="public-read")


@contextmanager
def local_bucket(monkeypatch: Any) -> Iterator[LocalBucket]:
    """A bucket whose credentials are in the environment."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would print each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        environment = {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_ENDPOINT_URL": address,
            "AWS_REGION": "us-east-1",
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        urllib.request.urlopen(f"{address}/moto-api/reset", data=b"").close()  # noqa: S310 - buckets of other tests
        client = boto3.client("s3")
        client.create_bucket(Bucket="scans")
        yield LocalBucket(client, address)
        client.close()
    finally:
        server.stop()
