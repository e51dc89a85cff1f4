"""Objects in buckets and on servers: what is known of them, their bytes, and what can go wrong on the way.

Through obstore: one package without dependencies for all kinds, with time-outs, retries and streams of its own. What it
says of an error may hold an address with its signature, or a page of the server. So it is never repeated: an error is
told in our words, by its kind.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import repeat
from types import ModuleType
from typing import Any

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.ahead import ahead
from lesioncount.files.remote_path import RemotePath
from lesioncount.optional import optional

# For a connection to be made, and for one that says nothing; and in all, which is for large objects on slow lines.
_SECONDS_TO_CONNECT, _SECONDS_TO_READ, _HOURS = 10, 60, 6

# A server that is busy is asked again, for about a minute in all.
_RETRIES: Any = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=8), "base": 2},
}

# Blocks of a stream, and how many are fetched while earlier ones are decompressed.
_BLOCK, _BLOCKS_AHEAD = 1 << 20, 4


@dataclass(frozen=True)
class ObjectState:
    """What is known of an object without reading it.

    Attributes
    ----------
    size : int
    version : str or None
        What changes with its content: the ETag, or else the time of its last change; None if the server tells neither.
    """

    size: int
    version: str | None

    @classmethod
    def of(cls, meta: Any) -> ObjectState:
        """From what obstore tells; a server without times answers with that of the epoch."""
        tag, modified = meta["version"] or meta["e_tag"], meta["last_modified"]
        changed = modified.isoformat() if modified is not None and modified.timestamp() > 0 else None
        return cls(int(meta["size"]), tag or changed)


def obstore() -> ModuleType:
    """The package, or a message that names the extra."""
    return optional("obstore", "remote", "Reading s3://, gs:// and https://")


def store_of(path: RemotePath) -> Any:
    """The store of a bucket; of an address of a server, the address itself, with its query."""
    return _bucket(path.scheme, path.host) if path.is_listed else _server(path.secret_address, path.scheme)


def key_of(path: RemotePath) -> str:
    """The key of an object in its store."""
    return path.key if path.is_listed else ""


@lru_cache(maxsize=16)
def _bucket(scheme: str, name: str, *, below: str | None = None) -> Any:
    obstore()
    from obstore import store

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options = _client_options(allow_http=scheme == "s3" and endpoint.startswith("http://"))
    kind: Any = store.S3Store if scheme == "s3" else store.GCSStore
    return kind(name, prefix=below, client_options=options, retry_config=_RETRIES)


@lru_cache(maxsize=16)
def _server(address: str, scheme: str) -> Any:
    obstore()
    from obstore import store

    options = _client_options(allow_http=scheme == "http")
    return store.HTTPStore.from_url(address, client_options=options, retry_config=_RETRIES)


def folder_store(path: RemotePath) -> Any:
    """The store of what lies below a path: of a zarr array or group."""
    return _bucket(path.scheme, path.host, below=path.key or None) if path.is_listed else store_of(path)


def _client_options(*, allow_http: bool) -> Any:
    return {
        "allow_http": allow_http,
        "connect_timeout": timedelta(seconds=_SECONDS_TO_CONNECT),
        "read_timeout": timedelta(seconds=_SECONDS_TO_READ),
        "timeout": timedelta(hours=_HOURS),
    }


def state_of(path: RemotePath) -> ObjectState:
    """Size and version of an object, as the server tells them now; FileNotFoundError if there is none."""
    with explained(path):
        if path.is_listed:
            if not path.key:
                raise FileNotFoundError(str(path))
            return ObjectState.of(obstore().head(store_of(path), key_of(path)))
        # An address may be signed for reading only: so it is read, and nothing but the answer's head is taken.
        return ObjectState.of(obstore().get(store_of(path), key_of(path)).meta)


class RemoteStream(io.RawIOBase):
    """The bytes of an object from the first to the last, fetched ahead; going forward only.

    The first block is kept by the path. So a header that is looked at again, and a small file, are fetched once.
    """

    def __init__(self, path: RemotePath) -> None:
        self._path, self._place = path, 0
        first = path.__dict__.get("_first")
        self._first: tuple[ObjectState, bytes] = _first_block(path) if first is None else first
        path.__dict__["_first"] = self._first
        self._rest: Generator[bytes] | None = None
        self._block = memoryview(self._first[1])

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """Forward."""
        return True

    def tell(self) -> int:
        """How many bytes were read."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go forward, by reading what lies between."""
        target = offset + (self._place if whence == io.SEEK_CUR else 0)
        if whence == io.SEEK_END or target < self._place:
            raise io.UnsupportedOperation("a stream from a server goes forward only")
        room = bytearray(min(_BLOCK, target - self._place))
        while self._place < target and self.readinto(memoryview(room)[: target - self._place]):
            pass
        return self._place

    def readinto(self, into: Any) -> int:
        """Read at most so many bytes."""
        if not self._block and self._place < self._first[0].size:
            self._block = memoryview(self._next_block())
        view = memoryview(into).cast("B")
        n = min(len(view), len(self._block))
        view[:n], self._block = self._block[:n], self._block[n:]
        self._place += n
        return n

    def close(self) -> None:
        """Fetch no more."""
        if self._rest is not None:
            self._rest.close()
        super().close()

    def _next_block(self) -> bytes:
        if self._rest is None:
            self._rest = _blocks(self._path, *self._first)
        with explained(self._path):
            return next(self._rest, b"")


def _first_block(path: RemotePath) -> tuple[ObjectState, bytes]:
    with explained(path):
        answer = obstore().get(store_of(path), key_of(path))
        blocks = iter(answer.stream(min_chunk_size=_BLOCK >> 4))
        return ObjectState.of(answer.meta), bytes(next(blocks, b""))


def _blocks(path: RemotePath, state: ObjectState, first: bytes) -> Generator[bytes]:
    """All blocks but for what was the first one; raise if the object is no longer what it was then."""
    answer = obstore().get(store_of(path), key_of(path))
    if ObjectState.of(answer.meta) != state:
        raise MapFileError(f"{path} was changed while it was read. Count it again.")
    blocks = iter(answer.stream(min_chunk_size=_BLOCK))
    skipped = len(first)
    for block in ahead(repeat(lambda: bytes(next(blocks, b""))), n_threads=1, n_ahead=_BLOCKS_AHEAD):
        if not block:
            return
        if skipped < len(block):
            yield block[skipped:]
        skipped = max(0, skipped - len(block))


@contextmanager
def explained(path: RemotePath) -> Iterator[None]:
    """Say what went wrong with an object in our words: nothing of what the server or a library says is repeated."""
    try:
        yield
    except LesionCountError:
        raise
    except FileNotFoundError:
        raise RemoteNotFoundError(f"{path} does not exist: {_not_found(path)}.") from None
    except Exception as error:
        if not type(error).__module__.startswith("obstore") and not isinstance(error, OSError):
            raise
        raise MapFileError(f"{path} cannot be read: {_why(error, path.scheme)}") from None


class RemoteNotFoundError(MapFileError, FileNotFoundError):
    """An object that is not there."""


def _not_found(path: RemotePath) -> str:
    return "there is no such object in the bucket" if path.is_listed else "the server answers 404, not found"


# By what is in the text of an error: what to say of it.
_KINDS = {
    r"dns error|failed to lookup address|Name or service not known": "the name of its host is not known. Is it "
    "spelled right, and is there a network?",
    r"onnection refused": "its server refuses connections. Is the port right, and does it run?",
    r"timed out|TimedOut": f"its server did not answer in time ({_SECONDS_TO_CONNECT} s to connect, {_SECONDS_TO_READ} "
    "s to go on)",
    r"ertificate": "the certificate of its server is not valid",
    # The last: what is missing was asked for, of a server that sends all or nothing.
    r"Interrupted|IncompleteBody|IncompleteMessage|UnexpectedEof|onnection reset|Range request not supported": "the "
    "connection was cut while it was read. Try again, or with --resume",
    r"NoSuchBucket": "there is no such bucket",
    r"PermanentRedirect|Received redirect": "its bucket is in another region. Name that in AWS_REGION",
    r"RequestTimeTooSkewed": "the clock of this machine is wrong",
}

_NO_CREDENTIALS = {
    "s3": "there are no credentials in the environment. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or for a "
    "public bucket AWS_SKIP_SIGNATURE=true",
    "gs": "there are no credentials in the environment. Set GOOGLE_APPLICATION_CREDENTIALS, or for a public bucket "
    "GOOGLE_SKIP_SIGNATURE=true",
}

_DENIED = {
    "s3": "access is denied ({}). Are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY those of an account that may read "
    "it? For a public bucket set AWS_SKIP_SIGNATURE=true",
    "gs": "access is denied ({}). Does GOOGLE_APPLICATION_CREDENTIALS belong to an account that may read it? For a "
    "public bucket set GOOGLE_SKIP_SIGNATURE=true",
}
_DENIED_BY_SERVER = "access is denied ({}). If the address was signed, it may have expired"


def _why(error: Exception, scheme: str) -> str:
    """What to say of an error, to the end of the sentence."""
    kind = _kind(error, scheme)
    return kind if kind.endswith("?") else f"{kind}."


def _kind(error: Exception, scheme: str) -> str:
    """The kind of an error, by what its text holds."""
    text = str(error)
    status = re.search(r"status(?: code)?:? (\d{3})", text)
    kind = type(error).__name__
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or (status and status[1] in ("401", "403")):
        code = status[1] if status else "403"
        return _DENIED.get(scheme, _DENIED_BY_SERVER).format(code)
    for pattern, meaning in _KINDS.items():
        if re.search(pattern, text):
            return meaning
    if scheme in _NO_CREDENTIALS and re.search(r"Missing(AccessKeyId| |Secret)|169\.254\.|metadata|redential", text):
        return _NO_CREDENTIALS[scheme]
    if status:
        return f"the server answers {status[1]}"
    return "its server cannot be reached. Is there a network, and is the address right?"
