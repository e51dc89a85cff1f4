"""The server of the page: routes, and nothing else; on this machine only."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import Any

import uvicorn
from msgspec.structs import asdict
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lesioncount.assess.reviews.export import export_reviews
from lesioncount.assess.reviews.journals import checked_reader, readers_of
from lesioncount.assess.reviews.progress import Order
from lesioncount.errors import LesionCountError, MapFileError, ReviewError
from lesioncount.review import page_files
from lesioncount.review.cohort import ReviewCohort
from lesioncount.review.guard import HEADERS, IDLE_SECONDS, BrowserSession, Connections, Guard
from lesioncount.review.reader import Reader
from lesioncount.review.requests import MOST_BYTES, Addition, Decision, Ending, ReaderName, Undoing, body_of
from lesioncount.version import __version__

_VOLUMES = {"image.nii.gz": "image", "map.nii.gz": "map", "labels.nii.gz": "labels"}


class ReviewServer:
    """The page of a cohort, for one reader or several.

    Parameters
    ----------
    cohort : ReviewCohort
    port : int, default 0
        0 takes one that is free.
    reader : str, optional
        Who sits before it; otherwise the page asks.
    blinded, show_others : bool, default False
        Hide what the network says; tell readers of each other's decisions.
    order : {"telling", "random", "run"}
        Of the scans.
    """

    def __init__(
        self,
        cohort: ReviewCohort,
        *,
        port: int = 0,
        reader: str | None = None,
        blinded: bool = False,
        show_others: bool = False,
        order: Order = "telling",
    ) -> None:
        self.cohort, self.blinded, self.show_others = cohort, blinded, show_others
        self._order: Order = "run" if blinded and order == "telling" else order  # doubt tells what the network says
        self.reader = None if reader is None else checked_reader(reader)
        self._socket = _bound(port)
        self.guard = Guard(self._socket.getsockname()[1])
        self._connections = Connections()
        self._readers: dict[str, Reader] = {}
        self._lock = Lock()
        self._server = self._uvicorn()

    @property
    def address(self) -> str:
        """For the browser, with the token."""
        return self.guard.address

    def run(self) -> None:
        """Serve until interrupted, or stopped."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.should_exit = True

    def _uvicorn(self) -> uvicorn.Server:
        config = uvicorn.Config(
            self.app(),
            log_config=None,  # the loggers of the process that it runs in stay as they are
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            http=self._connections.protocol(),
            timeout_keep_alive=int(IDLE_SECONDS),
            timeout_graceful_shutdown=2,
        )
        return uvicorn.Server(config)

    def app(self) -> ASGIApp:
        """The application, as any server of Python web pages can run it."""
        scan = "/api/scan/{number:int}"
        routes = [
            Route("/", self._index),
            Route("/page/{name}", self._page_file),
            Route("/api/session", self._session),
            Route("/api/reader", self._reader, methods=["POST"]),
            Route("/api/cohort", self._cohort),
            Route(scan, self._scan),
            Route(scan + "/decisions", self._taking(Decision, Reader.decide), methods=["POST"]),
            Route(scan + "/added", self._taking(Addition, Reader.add), methods=["POST"]),
            Route(scan + "/undo", self._taking(Undoing, Reader.undo), methods=["POST"]),
            Route(scan + "/done", self._taking(Ending, Reader.done), methods=["POST"]),
            Route(scan + "/{volume}", self._volume),
            Route("/api/empty", self._empty, methods=["POST"]),
            Route("/api/export", self._export, methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {HTTPException: _refused, LesionCountError: _failed, OSError: _failed}
        return _Guarded(Starlette(routes=routes, exception_handlers=handlers), self.guard, self._connections)

    async def _index(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None and self.guard.is_token(token):
            session = self.guard.session_of(request.headers.get("cookie")) or self.guard.open_session(self.reader)
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(self.guard.cookie_name, session.key, httponly=True, samesite="strict", path="/")
            return answer
        _session_of(request)
        return HTMLResponse(page_files.index())

    async def _page_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        content = await run_in_threadpool(page_files.page_file, name)
        if content is None:
            raise HTTPException(404, "There is no such file of the page.")
        return Response(content, media_type=page_files.TYPES[name])

    async def _session(self, request: Request) -> Response:
        return JSONResponse(self._described(_session_of(request)))

    async def _reader(self, request: Request) -> Response:
        session = _session_of(request)
        session.reader = checked_reader(body_of(await _body(request), ReaderName).name)
        return JSONResponse(self._described(session))

    def _described(self, session: BrowserSession) -> dict[str, Any]:
        return {
            "reader": session.reader,
            "blinded": self.blinded,
            "version": __version__,
            "has_viewer": page_files.has_viewer(),
        }

    def _cohort(self, request: Request) -> Response:
        reader = self._reader_of(request)
        return JSONResponse(reader.overview() | {"others": self._others(reader)})

    def _scan(self, request: Request) -> Response:
        reader, number = self._reader_of(request), self._number(request)
        others = {name: self._reader_named(name).decisions(number) for name in self._others(reader)}
        return JSONResponse(reader.scan(number) | {"others": others})

    def _others(self, reader: Reader) -> list[str]:
        """The names of other readers, if their decisions are to be told."""
        return [name for name in readers_of(self.cohort.out) if self.show_others and name != reader.journal.reader]

    def _volume(self, request: Request) -> Response:
        self._reader_of(request)
        number, kind = self._number(request), _VOLUMES.get(request.path_params["volume"])
        is_hidden = self.blinded and kind in ("map", "labels")
        if kind is None or is_hidden or (kind == "image" and not self.cohort.has_image(number)):
            raise HTTPException(404, "There is no such picture of this scan.")
        return Response(self.cohort.volume(number, kind), media_type="application/gzip")

    def _taking(self, kind: type, take: Callable[..., dict[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        """A route that takes something from the page."""

        async def route(request: Request) -> Response:
            reader, number = self._reader_of(request), self._number(request)
            wish: Any = body_of(await _body(request), kind)
            return JSONResponse(await run_in_threadpool(take, reader, number, **asdict(wish)))

        return route

    async def _empty(self, request: Request) -> Response:
        reader = self._reader_of(request)
        await _body(request)
        return JSONResponse(await run_in_threadpool(reader.finish_empty))

    async def _export(self, request: Request) -> Response:
        _session_of(request)
        await _body(request)
        files, notes = await run_in_threadpool(export_reviews, self.cohort.results)
        return JSONResponse({"files": files, "notes": notes})

    def _number(self, request: Request) -> int:
        number: int = request.path_params["number"]
        if not 0 <= number < len(self.cohort.scans):
            raise HTTPException(404, "There is no such scan.")
        return number

    def _reader_of(self, request: Request) -> Reader:
        session = _session_of(request)
        if session.reader is None:
            raise HTTPException(409, "Who is reader? Give a name first.")
        return self._reader_named(session.reader)

    def _reader_named(self, reader: str) -> Reader:
        with self._lock:
            if reader not in self._readers:
                self._readers[reader] = Reader(self.cohort, reader, blinded=self.blinded, order=self._order)
            return self._readers[reader]


class _Guarded:
    """Turns away requests that are not meant for this server, or not from our page, before anything looks at them."""

    def __init__(self, app: ASGIApp, guard: Guard, connections: Connections) -> None:
        self._app, self._guard, self._connections = app, guard, connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        headers, client = request.headers, scope.get("client")
        app = self._app
        if not self._guard.knows_host(headers.get("host")):
            app = _error(421, f"This server is http://{self._guard.hosts[0]}/ and nothing else.")
        elif not self._guard.is_own_origin(headers.get("origin")):
            app = _error(403, "Only the page of this server may ask.")
        else:
            session = self._guard.session_of(headers.get("cookie"))
            scope["state"] = {"session": session}
            if session is not None:
                self._connections.is_readers(client)
        try:
            await app(scope, receive, _with_headers(send))
        finally:
            self._connections.idle(client)


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *ours]}
        await send(message)

    return sending


def _session_of(request: Request) -> BrowserSession:
    session = request.scope["state"]["session"]
    if not isinstance(session, BrowserSession):
        raise HTTPException(403, "Open the address that lesioncount review has printed, with its token.")
    return session


async def _body(request: Request) -> bytes:
    """The body of a request, read no further than it may be long."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "Expected JSON.")
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > MOST_BYTES:
            raise HTTPException(413, f"The request is longer than {MOST_BYTES} bytes.")
    return content


def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001 - what Starlette calls it with
    return _error(getattr(error, "status_code", 400), getattr(error, "detail", str(error)))


def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001 - what Starlette calls it with
    is_ours = isinstance(error, ReviewError)
    return _error(422 if is_ours else 500, str(error) or type(error).__name__)


def _error(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)


def _bound(port: int) -> socket.socket:
    """A socket on this machine only."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        bound.listen()  # a browser that is faster than the server waits
    except OSError as error:
        bound.close()
        raise MapFileError(
            f"The port {port} cannot be used: {error.strerror}. Choose another, or leave --port out."
        ) from None
    return bound
