"""Who may ask, and how many at once: a browser on this machine that was given the token, from our own page."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

# Scripts and styles come from this server only; NiiVue makes workers and textures of data that it holds.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self' data: blob:; worker-src 'self' blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)

# Nothing is kept by the browser: on the same port there may be other patients tomorrow.
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

# Browsers that have the page open at the same time; the oldest is forgotten.
_MOST_SESSIONS = 100


@dataclass
class BrowserSession:
    """A browser that has shown the token, and the reader who sits before it."""

    key: str
    reader: str | None = None


@dataclass
class Guard:
    """What lets requests in.

    Parameters
    ----------
    port : int
        Of the server; browsers keep cookies by host alone, so that the name of ours has the port in it.
    token : str
        That the address has which is printed.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _sessions: dict[str, BrowserSession] = field(default_factory=dict)

    @property
    def cookie_name(self) -> str:
        """Of the cookie that stands for the token."""
        return f"lesioncount-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser may call this server: a name that leads here by a trick of its server is none of these."""
        return tuple(f"{host}:{self.port}" for host in ("127.0.0.1", "localhost"))

    @property
    def address(self) -> str:
        """For the address bar."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def knows_host(self, host: str | None) -> bool:
        """Whether a request was meant for this server."""
        return host in self.hosts

    def is_own_origin(self, origin: str | None) -> bool:
        """Whether a request comes from our page; programs other than browsers do not say."""
        return origin is None or origin in tuple(f"http://{host}" for host in self.hosts)

    def is_token(self, token: str) -> bool:
        """Whether this is the token, in the same time whatever it is."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def session_of(self, cookies: str | None) -> BrowserSession | None:
        """The browser of a header of cookies; None if it has not shown the token."""
        try:
            found = SimpleCookie(cookies or "").get(self.cookie_name)
        except CookieError:
            return None
        return None if found is None else self._sessions.get(found.value)

    def open_session(self, reader: str | None) -> BrowserSession:
        """Let a browser in that has shown the token."""
        session = BrowserSession(secrets.token_urlsafe(24), reader)
        self._sessions[session.key] = session
        while len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session


# Connections without the token at a time, more than a few browsers open at once.
MOST_STRANGERS = 100

# How long a stranger may stay, and a reader's browser that asks for nothing.
IDLE_SECONDS = 30.0

# Address and port of the other end, which no two connections share.
Client = tuple[str, int] | None


class Connections:
    """All connections to a server.

    Each begins as a stranger's, and is a reader's from the first request on that has shown the token. When too many
    strangers come, the one who has been there longest must go.
    """

    def __init__(self) -> None:
        self._transports: dict[Client, asyncio.Transport] = {}
        self._strangers: dict[Client, None] = {}  # in the order in which they came
        self._ends: dict[Client, asyncio.TimerHandle] = {}

    def opened(self, client: Client, transport: asyncio.Transport) -> None:
        """Somebody has come, who has said nothing yet."""
        self._transports[client], self._strangers[client] = transport, None
        self.idle(client)
        if len(self._strangers) > MOST_STRANGERS:
            self._end(next(iter(self._strangers)))

    def closed(self, client: Client) -> None:
        """Somebody has gone."""
        self._transports.pop(client, None)
        self._strangers.pop(client, None)
        self.busy(client)

    def is_readers(self, client: Client) -> None:
        """Who has shown the token has a place, and time."""
        self._strangers.pop(client, None)
        self.busy(client)

    def busy(self, client: Client) -> None:
        """A request is being answered, however long that takes."""
        if client in self._ends:
            self._ends.pop(client).cancel()

    def idle(self, client: Client) -> None:
        """Nothing was asked yet, or all was answered."""
        if client in self._transports and client not in self._ends:
            self._ends[client] = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end, client)

    def _end(self, client: Client) -> None:
        transport = self._transports[client]
        self.closed(client)
        transport.abort()  # to `close`, it would have to take all that it was sent

    def protocol(self) -> type[asyncio.Protocol]:
        """What uvicorn speaks with each connection, and tells of it here."""
        connections = self

        class Watched(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes, by what is installed
            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                connections.opened(self.client, transport)

            def connection_lost(self, exc: Exception | None) -> None:
                connections.closed(self.client)
                super().connection_lost(exc)

        return Watched
