"""Addresses of data that lives elsewhere, as paths: ``s3://bucket/key``, ``gs://bucket/key``, ``https://host/file``."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Self

from lesioncount.errors import MapFileError

if TYPE_CHECKING:
    from lesioncount.files.remote_objects import ObjectState

    _NativePath = Path
else:
    _NativePath = type(Path())  # before Python 3.12, Path itself cannot be a base

# Buckets can be listed, servers cannot.
LISTED, UNLISTED = ("s3", "gs"), ("https", "http")

# How the path begins that pathlib makes of an address.
_FIRST_PARTS = frozenset((f"{scheme}:",) for scheme in (*LISTED, *UNLISTED))

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")

# Machines that need no encryption: what is sent to them goes nowhere.
_LOOPBACK = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]+)?")

# What may be secret in addresses that are quoted: what stands before the host, and all that follows the path.
_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://)[^\s/]*@")
_QUERY = re.compile(r"(https?://[^\s?#'\"]*)[?#][^\s'\"]*", re.IGNORECASE)


class RemotePath(_NativePath):
    """A path whose text begins with a scheme. Only what readers need of a path is answered, by asking the server.

    The query of an address, which may be a signature, is no part of the path: it is sent to the server and is in no
    text, and what is derived of the path has none. Pickles hold it, since other processes read the file as well.
    """

    _query: str = ""

    @classmethod
    def of(cls, text: str) -> Self:
        """The path of an address; raise if it is none, without repeating what may be secret."""
        scheme, _, rest = text.partition("://")
        scheme = scheme.lower()
        query = ""
        if scheme in UNLISTED:
            rest, _, query = rest.partition("#")[0].partition("?")
        host, _, below = rest.partition("/")
        if "@" in host:
            raise MapFileError(
                f"Addresses with a user or a password ({scheme}://…@…) are not taken: they would end up in logs. "
                "Credentials are taken from the environment, such as AWS_ACCESS_KEY_ID."
            )
        if not (_BUCKET if scheme in LISTED else _HOST).fullmatch(host):
            kind = "bucket" if scheme in LISTED else "host"
            raise MapFileError(
                f"Expected the name of a {kind} after {scheme}://, as in {scheme}://{kind}/scan.nii.gz, but what is "
                "there is none."
            )
        path = cls(f"{scheme}:", host, *(part for part in below.split("/") if part))
        path._query = query
        return path

    def __str__(self) -> str:
        return f"{self.parts[0]}//{'/'.join(self.parts[1:])}"

    def __reduce__(self) -> tuple[Callable[[str, str], RemotePath], tuple[str, str]]:
        return _restored, (str(self), self._query)

    @property
    def scheme(self) -> str:
        """How it is read: s3, gs, https or http."""
        return self.parts[0].removesuffix(":")

    @property
    def host(self) -> str:
        """The bucket, or the server."""
        return self.parts[1]

    @property
    def key(self) -> str:
        """The path below the bucket or the server."""
        return "/".join(self.parts[2:])

    @property
    def is_listed(self) -> bool:
        """Whether there is a way to know what lies below it."""
        return self.scheme in LISTED

    @property
    def is_open_to_all(self) -> bool:
        """Whether it is sent through a network without encryption."""
        return self.scheme == "http" and _LOOPBACK.fullmatch(self.host) is None

    @property
    def secret_address(self) -> str:
        """With its query: for the server only."""
        return f"{self}?{self._query}" if self._query else str(self)

    def absolute(self) -> Self:
        """An address is whole."""
        return self

    def inside(self, name: str) -> Self:
        """A path in it, as of a zarr store: it is read with the same query."""
        path = self.joinpath(*PurePosixPath(name).parts)
        path._query = self._query  # noqa: SLF001 - of the same class
        return path

    def below(self, folder: PurePath) -> PurePosixPath:
        """Where it lies below a folder; ValueError if it does not."""
        n = len(folder.parts)
        if self.parts[:n] != folder.parts:
            raise ValueError(f"{self} is not below {folder}")
        return PurePosixPath(*self.parts[n:])

    def state(self) -> ObjectState:
        """Size and version, as the server tells them now."""
        from lesioncount.files.remote_objects import state_of

        return state_of(self)

    def exists(self, **_: Any) -> bool:
        """Whether there is an object of this name, or any below it."""
        return self.is_file() or self.is_dir()

    def is_file(self, **_: Any) -> bool:
        """Whether there is an object of this name."""
        try:
            self.state()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, **_: Any) -> bool:
        """Whether there are objects below this name; of a server, nobody knows."""
        from lesioncount.files.remote_listing import is_prefix

        return self.is_listed and is_prefix(self)

    def is_symlink(self) -> bool:
        """There are none."""
        return False

    def open(self, *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]  # only for reading bytes
        """Its bytes, from the first to the last."""
        from lesioncount.files.remote_objects import RemoteStream

        return io.BufferedReader(RemoteStream(self), 1 << 18)

    def read_bytes(self) -> bytes:
        """All of a small object."""
        with self.open("rb") as file:
            content: bytes = file.read()
        return content

    def read_text(self, encoding: str | None = None, errors: str | None = None, **_: Any) -> str:
        """All of a small object of text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")


def _restored(text: str, query: str) -> RemotePath:
    path = RemotePath.of(text)
    path._query = query  # noqa: SLF001 - the other half of `__reduce__`
    return path


def to_path(given: str | os.PathLike[str], /) -> Path:
    """The path that is meant: of a file, or the address of something that lives elsewhere.

    Examples
    --------
    >>> str(to_path("https://example.org/scan.nii.gz?signature=secret"))
    'https://example.org/scan.nii.gz'
    """
    if isinstance(given, RemotePath):
        return given
    if is_elsewhere(given):
        raise MapFileError(
            f"{given} {why_gone(Path(given))}. If you gave the address yourself, give it as text: pathlib has changed "
            "it."
        )
    if isinstance(given, Path):  # as most are, of very many
        return given
    text = os.fspath(given)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(given)
    if scheme[1].lower() not in (*LISTED, *UNLISTED):
        raise MapFileError(
            f"Expected a file, or an address that begins with s3://, gs://, https:// or http://, but got one that "
            f"begins with {scheme[0]}."
        )
    return RemotePath.of(text)


def is_elsewhere(path: object, /) -> bool:
    """Whether a path was made from an address, as those are that are read back from records.

    What a record names is not fetched: somebody else may have written it.
    """
    return isinstance(path, PurePath) and not isinstance(path, RemotePath) and path.parts[:1] in _FIRST_PARTS


def why_gone(path: Path, /) -> str:
    """What to say of a map that was counted and cannot be read again."""
    if is_elsewhere(path):
        return "lives elsewhere and is fetched only while it is counted (copy it to this machine and count it there)"
    return "is no longer there"


def absolute_text(path: str | os.PathLike[str], /) -> str:
    """The whole path as text, without ``..``, by which it is known again."""
    path = to_path(path)
    return str(path) if isinstance(path, RemotePath) else os.path.abspath(path)  # noqa: PTH100 - `absolute` keeps ..


def without_secrets(text: str, /) -> str:
    """A text without what may be secret in its addresses: users, passwords, queries.

    Examples
    --------
    >>> without_secrets("GET https://me:secret@example.org/scan.nii.gz?signature=secret failed")
    'GET https://example.org/scan.nii.gz failed'
    """
    return _QUERY.sub(r"\1", _USER.sub(r"\1", text))


def tell_remote(path: object, error: Exception, /) -> None:
    """Raise what is wrong with a server, of which the error of a library may say too much."""
    if isinstance(path, RemotePath) and type(error).__module__.startswith("obstore"):
        from lesioncount.files.remote_objects import explained

        with explained(path):
            raise error


def check_local(path: str | os.PathLike[str], /) -> Path:
    """A folder of results, which is always one on this machine."""
    local = to_path(path)
    if isinstance(local, RemotePath):
        copy = {"s3": f": aws s3 sync out/ {local}", "gs": f": gcloud storage rsync -r out/ {local}"}
        raise MapFileError(
            f"Results are written to a folder on this machine, but {local} is elsewhere. Choose one, such as out/, and "
            f"copy it when it is complete{copy.get(local.scheme, '')}."
        )
    return local
