"""Who may ask the server of the page, and for what: requests that must change nothing."""

import http.client
import json
import socket
from contextlib import suppress

import pytest
from review_cohort import counted
from review_server import Client, serving


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return counted(tmp_path_factory.mktemp("cohort"), {"a": [0.9, 0.6, 0.3], "b": [0.8], "c": []}).out


@pytest.fixture(scope="module")
def server(out):
    with serving(out, reader="ann") as server:
        yield server


@pytest.fixture
def client(server, out):
    yield Client(server.guard.port, server.guard.token)
    assert not (out / "reviews").exists()


def test_token_in_the_address_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(server):
    status, headers, _ = Client(server.guard.port).raw("GET", f"/?token={server.guard.token}")
    assert (status, headers["location"]) == (303, "/")
    assert "httponly" in headers["set-cookie"].lower()
    assert "samesite=strict" in headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "path",
    ["/", "/?token=wrong", "/?token=", "/api/session", "/api/cohort", "/api/scan/0", "/api/scan/0/map.nii.gz"],
)
def test_without_the_token_nothing_is_told(server, path):
    status, _, content = Client(server.guard.port).raw("GET", path)
    assert status == 403
    assert b"Open the address" in content


@pytest.mark.parametrize(
    "cookie", ["lesioncount-{port}=x", "lesioncount-{port}={token}", "lesioncount-{port}", "=;=", ""]
)
def test_cookies_that_the_server_did_not_give_are_worth_nothing(server, cookie):
    client = Client(server.guard.port)
    client.cookie = cookie.format(port=server.guard.port, token=server.guard.token)
    assert client.raw("GET", "/api/cohort")[0] == 403


def test_without_the_token_nothing_is_written(server, out):
    for path in ("/api/reader", "/api/scan/0/decisions", "/api/scan/0/undo", "/api/export"):
        assert Client(server.guard.port).raw("POST", path, b"{}")[0] == 403
    assert not (out / "reviews").exists()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "0.0.0.0:{port}", "[::1]:{port}"]
)
def test_request_for_another_host_is_turned_away(client, host):
    status, _, _ = client.raw("GET", "/api/cohort", headers={"Host": host.format(port=client.port)})
    assert status in (400, 421)


def test_post_from_another_page_is_turned_away(client):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert client.raw("POST", "/api/scan/0/undo", b"{}", {"Origin": origin})[0] == 403
    own = {"Origin": f"http://127.0.0.1:{client.port}"}
    assert client.raw("POST", "/api/scan/0/undo", b"{}", own)[0] == 422  # nothing to take back, but let in


def test_forms_of_other_pages_cannot_post(client):
    body = b'{"candidate": 1, "verdict": "lesion"}'
    assert client.raw("POST", "/api/scan/0/decisions", body, {"Content-Type": "text/plain"})[0] == 415


def test_what_changes_something_is_not_done_by_a_link(client):
    for path in ("/api/reader", "/api/scan/0/undo", "/api/scan/0/done", "/api/export"):
        assert client.raw("GET", path)[0] in (404, 405)


@pytest.mark.parametrize(
    "path",
    [
        "/page/..%2fserver.py",
        "/page/../server.py",
        "/page/%2e%2e/%2e%2e/cli/review.py",
        "/page//etc/passwd",
        "/page/index.html",
        "/page/package.json",
        "/api/scan/0/..%2f..%2frun.json",
        "/api/scan/0/run.json",
        "/api/scan/99999999999999999999/map.nii.gz",
        "/api/scan/-1",
        "/api/scan/3",
        "/api/scan/a",
        "/etc/passwd",
    ],
)
def test_no_path_of_a_client_is_ever_opened(client, path):
    status, _, content = client.raw("GET", path)
    assert status == 404
    assert set(json.loads(content)) == {"error"}


def test_long_bodies_are_refused(client):
    assert client.raw("POST", "/api/scan/0/decisions", b"[" * 70_000)[0] == 413
    status, _, content = client.raw("POST", "/api/scan/0/decisions", b"[" * 60_000)
    assert (status, "cannot be understood" in content.decode()) == (422, True)


@pytest.mark.parametrize(
    "body",
    [
        {"candidate": 99, "verdict": "lesion"},
        {"candidate": 0, "verdict": "lesion"},
        {"candidate": 1, "verdict": "perhaps"},
        {"candidate": 1, "verdict": "several", "n": 1},
        {"candidate": 1, "verdict": "several", "n": 10**30},
        {"candidate": "1", "verdict": "lesion"},
        {"candidate": 1, "verdict": "lesion", "seconds": -3},
        {"candidate": 1, "verdict": "lesion", "seconds": float("nan")},
        {"candidate": 1, "verdict": "lesion", "shown": {"x": "y" * 9000}},
        {"verdict": "lesion"},
    ],
)
def test_decisions_that_make_no_sense_are_refused_and_not_written(client, body):
    status, answer = client.post("/api/scan/0/decisions", **body)
    assert status == 422
    assert answer["error"].endswith(".")


@pytest.mark.parametrize("at", [[1, 2], [24, 0, 0], [-1, 0, 0], [1, 2, 3, 4], [1.5, 2, 3], "here"])
def test_lesions_outside_of_the_map_are_refused(client, at):
    assert client.post("/api/scan/0/added", at=at)[0] == 422


def test_policy_allows_no_inline_script_and_no_other_server(client):
    _, headers, _ = client.raw("GET", "/")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_server_listens_on_this_machine_only(server):
    assert server._socket.getsockname()[0] == "127.0.0.1"


HALF_A_REQUEST = b"GET /api/cohort HTTP/1.1\r\nHost: 127"


def half_open(port, n):
    """Connections that have begun a request, and go no further."""
    found = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(n)]
    for connection in found:
        connection.sendall(HALF_A_REQUEST)
    return found


def test_strangers_who_say_nothing_do_not_lock_the_reader_out(server, client):
    strangers = half_open(client.port, 250)
    try:
        assert client.get("/api/cohort")[0] == 200
        assert Client(server.guard.port, server.guard.token).get("/api/cohort")[0] == 200, "another browser comes in"
    finally:
        for one in strangers:
            one.close()


def test_a_reader_who_is_connected_stays_when_many_strangers_come(client):
    reader = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
    ask = ("GET", "/api/session", None, {"Cookie": client.cookie})
    reader.request(*ask)
    assert reader.getresponse().read()
    own = reader.sock
    strangers = half_open(client.port, 250)
    try:
        reader.request(*ask)
        assert reader.getresponse().status == 200
        assert reader.sock is own, "the connection is the same"
    finally:
        for one in (reader, *strangers):
            one.close()


def test_connections_that_say_nothing_end(server, monkeypatch):
    monkeypatch.setattr("lesioncount.review.guard.IDLE_SECONDS", 0.3)
    for sent in (b"", HALF_A_REQUEST):
        with socket.create_connection(("127.0.0.1", server.guard.port), timeout=20) as silent:
            silent.sendall(sent)
            with suppress(ConnectionResetError):
                assert silent.recv(100) == b""


def test_a_reader_who_begins_another_request_and_stops_ends_too(client, monkeypatch):
    monkeypatch.setattr("lesioncount.review.guard.IDLE_SECONDS", 0.3)
    whole = f"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nCookie: {client.cookie}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as reader:
        reader.sendall(whole)
        assert b"200 OK" in reader.recv(4096)
        reader.sendall(HALF_A_REQUEST)
        with suppress(ConnectionResetError):
            while reader.recv(4096):  # the rest of the first answer, and then the end
                pass
