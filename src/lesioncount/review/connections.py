"""Who is connected: readers keep their places, strangers have few of them, and a connection that says nothing ends."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

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
