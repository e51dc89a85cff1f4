"""The server of the page, over real HTTP."""

import gzip
import json
import os
import signal
import threading
from http.client import HTTPException

import nibabel as nib
import numpy as np
import pytest
from review_cohort import write_map
from review_server import Client, ServerProcess, serving

from lesioncount.cli import main
from lesioncount.errors import MapFileError
from lesioncount.review import page_files
from lesioncount.runs import count_batch


@pytest.fixture
def server(results, images):
    with serving(results.out, images=images, reader="ann") as server:
        yield server


@pytest.fixture
def client(server):
    return Client(server.guard.port, server.guard.token)


def _volume(content):
    return nib.Nifti1Image.from_bytes(gzip.decompress(content))


def test_port_in_use_is_said(server, results):
    with pytest.raises(MapFileError, match="cannot be used"), serving(results.out, port=server.guard.port):
        pass


def test_reader_is_asked_for_once(results):
    with serving(results.out) as server:
        client = Client(server.guard.port, server.guard.token)
        assert client.get("/api/session")[1]["reader"] is None
        assert client.get("/api/cohort")[0] == 409
        assert client.post("/api/reader", name=" ")[0] == 422
        assert client.post("/api/reader", name="Bea ")[1]["reader"] == "Bea"
        assert client.get("/api/session")[1]["reader"] == "Bea"
        assert client.get("/api/cohort")[0] == 200


def test_decision_changes_the_count_and_is_taken_back(client):
    _, before = client.get("/api/scan/0")
    assert [one["label"] for one in before["candidates"]] == list(range(1, 9))
    assert sum(before["distribution"]["pmf"]) == pytest.approx(1, abs=1e-4)
    status, after = client.post("/api/scan/0/decisions", candidate=1, verdict="several", n=3, seconds=2, shown={"z": 3})
    assert (status, after["saved"], after["decisions"]) == (200, 1, {"1": {"verdict": "several", "n": 3}})
    changed = 3 - before["candidates"][0]["existence"]
    assert after["distribution"]["mean"] - before["distribution"]["mean"] == pytest.approx(changed)
    assert after["left"]["n_until_certain"] <= before["left"]["n_until_certain"]
    _, undone = client.post("/api/scan/0/undo")
    assert undone["decisions"] == {}
    assert undone["distribution"] == before["distribution"]


def test_lesion_is_added_and_the_scan_done(client):
    status, answer = client.post("/api/scan/2/added", at=[1, 2, 3], seconds=1, shown={})
    assert (status, answer["added"][0]["at"], answer["distribution"]["mean"]) == (200, [1, 2, 3], 1)
    _, answer = client.post("/api/scan/2/done", done=True, seconds=1)
    assert answer["is_done"]
    rows = client.get("/api/cohort")[1]["scans"]
    assert [(row["is_done"], row["seconds"]) for row in rows] == [(False, 0), (False, 0), (True, 2)]


def test_rest_of_a_scan_is_rejected_at_once(client):
    _, answer = client.post("/api/scan/1/done", done=True, rest="none", seconds=1)
    assert [one["verdict"] for one in answer["decisions"].values()] == ["none", "none"]
    assert answer["left"] == {"n_until_certain": 0, "sentence": "The count is certain."}


def test_cohort_is_in_the_order_of_what_review_tells(client):
    _, cohort = client.get("/api/cohort")
    assert cohort["order"] == [0, 1, 2]
    client.post("/api/scan/0/done", done=True, rest="none")
    _, cohort = client.get("/api/cohort")
    assert cohort["order"] == [1, 2, 0]
    assert cohort["left"]["sd_of_total"] == pytest.approx((0.16 + 0.25) ** 0.5, abs=1e-4)
    assert "would change the total" in cohort["left"]["sentence"]


def test_scans_without_candidates_are_done_at_once(results):
    with serving(results.out, reader="ann", order="calibration") as server:
        client = Client(server.guard.port, server.guard.token)
        cohort = client.get("/api/cohort")[1]
        assert sorted(cohort["order"]) == [0, 1, 2]
        assert cohort["left"]["sentence"] == "0 of 10 scans, 0 of 10 lesions."
        assert client.post("/api/empty") == (200, {"done": [2]})
        assert client.post("/api/empty") == (200, {"done": []})
        client.post("/api/scan/1/decisions", candidate=1, verdict="several", n=3, seconds=2, shown={})
        client.post("/api/scan/1/done", done=True, rest="none")
        assert client.get("/api/cohort")[1]["left"]["sentence"] == "2 of 10 scans, 3 of 10 lesions."


def test_image_map_and_labels_lie_on_one_grid(client):
    volumes = [_volume(client.raw("GET", f"/api/scan/0/{name}.nii.gz")[2]) for name in ("image", "map", "labels")]
    image, probabilities, labels = (np.asarray(volume.dataobj) for volume in volumes)
    assert image.shape == probabilities.shape == labels.shape == (24, 20, 12)
    assert all(np.array_equal(volume.affine, np.diag([2, 2, 2, 1])) for volume in volumes)
    _, scan = client.get("/api/scan/0")
    for one in scan["candidates"]:
        assert labels[tuple(one["peak"])] == one["label"]
        assert probabilities[tuple(one["peak"])] == pytest.approx(one["peak_probability"], abs=1 / 255)


def test_scan_without_image_says_so(results):
    with serving(results.out, reader="ann") as server:
        client = Client(server.guard.port, server.guard.token)
        assert client.get("/api/scan/0")[1]["has_image"] is False
        assert client.raw("GET", "/api/scan/0/image.nii.gz")[0] == 404


@pytest.mark.parametrize("kind", ["map", "labels"])
def test_map_that_has_changed_is_said_and_not_shown(client, results, kind):
    path = results.out.parent / "maps" / "b.nii.gz"
    write_map(path, [0.8, 0.55])
    status, answer = client.get(f"/api/scan/1/{kind}.nii.gz")
    assert (status, f"{path} has changed since it was counted" in answer["error"]) == (500, True)


def test_no_decision_is_taken_about_a_map_that_was_replaced(client, results):
    path = results.out.parent / "maps" / "b.nii.gz"
    counted, decision = path.read_bytes(), {"candidate": 1, "verdict": "lesion"}
    assert client.get("/api/scan/1")[0] == client.raw("GET", "/api/scan/1/map.nii.gz")[0] == 200
    write_map(path, [0.8, 0.55])
    for what, body in (("decisions", decision), ("added", {"at": [1, 1, 1]}), ("done", {"done": True})):
        status, answer = client.post(f"/api/scan/1/{what}", **body)
        assert (status, f"{path} has changed since it was counted" in answer["error"]) == (500, True)
    assert not (results.out / "reviews").exists()
    path.write_bytes(counted)
    assert client.post("/api/scan/1/decisions", **decision)[0] == 200, "it is what was counted again"
    path.unlink()
    assert client.post("/api/scan/1/undo")[0] == 200, "what was shown was what was counted"


def test_pictures_are_reviewed_as_volumes_of_one_slice(tmp_path):
    write_map(tmp_path / "maps" / "p.nii.gz", [0.9, 0.5], shape=(30, 20))
    count_batch([tmp_path / "maps"], tmp_path / "out")
    with serving(tmp_path / "out", reader="ann", images=tmp_path / "maps") as server:
        client = Client(server.guard.port, server.guard.token)
        _, scan = client.get("/api/scan/0")
        assert scan["shape"] == [30, 20]
        assert scan["candidates"][0]["peak"] == [2, 2, 0]
        assert scan["candidates"][0]["bbox"] == [2, 2, 0, 4, 3, 1]
        assert _volume(client.raw("GET", "/api/scan/0/labels.nii.gz")[2]).shape == (30, 20, 1)
        _, answer = client.post("/api/scan/0/added", at=[5, 6, 0])
        assert answer["added"][0]["at"] == [5, 6]
        assert client.post("/api/export")[1]["files"][-1] == "reviews/ann/p_accepted.nii.gz"
        assert client.post("/api/scan/0/added", at=[5, 6, 1])[0] == 422


def test_blinded_reader_is_told_nothing_of_the_network(results, images):
    with serving(results.out, images=images, reader="ann", blinded=True) as server:
        client = Client(server.guard.port, server.guard.token)
        _, scan = client.get("/api/scan/0")
        for one in scan["candidates"]:
            hidden = ("existence", "peak_probability", "saddle_probability", "variance_share")
            assert [one[name] for name in hidden] == [None] * 4
        assert scan["distribution"] is None
        assert [client.raw("GET", f"/api/scan/0/{name}.nii.gz")[0] for name in ("image", "map", "labels")] == [
            200,
            404,
            404,
        ]
        _, cohort = client.get("/api/cohort")
        assert cohort["scans"][0]["expected"] is None
        assert cohort["order"] == [0, 1, 2]
        assert cohort["left"] == {"sd_of_total": None, "sentence": "0 of 3 scans done."}
        _, answer = client.post("/api/scan/0/decisions", candidate=1, verdict="lesion")
        assert answer["left"] == {"n_until_certain": None, "sentence": "7 candidates left to decide."}


@pytest.mark.parametrize("show_others", [False, True])
def test_readers_see_each_other_only_if_asked(results, show_others):
    with serving(results.out, show_others=show_others) as server:
        ann, bob = (Client(server.guard.port, server.guard.token) for _ in range(2))
        for client, name in ((ann, "ann"), (bob, "bob")):
            client.post("/api/reader", name=name)
        ann.post("/api/scan/0/decisions", candidate=1, verdict="lesion")
        _, scan = bob.get("/api/scan/0")
        assert scan["decisions"] == {}
        seen = {"ann": {"decisions": {"1": {"verdict": "lesion", "n": 1}}, "added": [], "is_done": False}}
        assert scan["others"] == (seen if show_others else {})
        assert bob.get("/api/cohort")[1]["others"] == (["ann"] if show_others else [])


def _decide_all(client, verdict, answers):
    for _ in range(5):
        for candidate in range(1, 9):
            answers.append(client.post("/api/scan/0/decisions", candidate=candidate, verdict=verdict)[0])


def test_two_readers_and_two_servers_at_once_lose_nothing(results):
    with serving(results.out) as one, serving(results.out) as other:
        answers, threads = [], []
        for server, name in ((one, "ann"), (other, "bob"), (other, "ann")):
            client = Client(server.guard.port, server.guard.token)
            client.post("/api/reader", name=name)
            threads.append(threading.Thread(target=_decide_all, args=(client, "lesion", answers)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [200] * 120
        journals = {path.stem: path.read_text().splitlines() for path in (results.out / "reviews").iterdir()}
        assert {name: len(lines) for name, lines in journals.items()} == {"ann": 80, "bob": 40}
        # What is decided on one server stands on the other.
        clients = [Client(server.guard.port, server.guard.token) for server in (one, other)]
        for client in clients:
            client.post("/api/reader", name="ann")
        clients[0].post("/api/scan/1/decisions", candidate=1, verdict="none")
        assert clients[1].get("/api/scan/1")[1]["decisions"] == {"1": {"verdict": "none", "n": 0}}


def _kill_while_deciding(out, times, rng):
    """Decisions that were answered as saved, over so many servers that were killed while decisions were made."""
    answered, n_killed_busy = 0, 0
    for _ in range(times):
        server = ServerProcess(out, "--reader", "ann")
        client, until = server.client(), answered + int(rng.integers(1, 10))
        timer = threading.Timer(rng.uniform(0.0, 0.02), server.process.kill)
        try:
            while True:
                verdict = ("lesion", "none")[int(rng.integers(2))]
                body = {"shown": {"number": answered}, "candidate": int(rng.integers(1, 9)), "verdict": verdict}
                status, answer = client.post("/api/scan/0/decisions", **body)
                assert status == 200
                answered += 1
                assert answer["saved"] >= answered
                if answered == until:
                    timer.start()
        except (OSError, ValueError, HTTPException):  # killed: no answer, or half of one
            n_killed_busy += 1
        timer.join()
        server.kill()
    return answered, n_killed_busy


@pytest.mark.parametrize("times", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_no_decision_that_was_answered_as_saved_is_missing_after_kill_9(results, rng, times):
    answered, n_killed_busy = _kill_while_deciding(results.out, times, rng)
    assert n_killed_busy == times
    lines = (results.out / "reviews" / "ann.jsonl").read_bytes().splitlines()
    whole = [json.loads(line) for line in lines if line.endswith(b"}")]
    # The one in flight when the server died may be there as well, under the same number as the next that was sent.
    kept = [event["shown"]["number"] for event in whole]
    assert sorted(set(kept)) == list(range(max(kept) + 1))
    assert len(set(kept)) >= answered
    server = ServerProcess(results.out, "--reader", "ann")
    last = {str(event["candidate"]): event["verdict"] for event in whole}
    _, scan = server.client().get("/api/scan/0")
    server.kill()
    assert {label: one["verdict"] for label, one in scan["decisions"].items()} == last


def test_ctrl_c_ends_the_server_cleanly(results):
    server = ServerProcess(results.out, "--reader", "ann")
    assert server.client().get("/api/session")[1]["reader"] == "ann"
    server.process.send_signal(signal.SIGINT)
    out, err = server.process.communicate(timeout=20)
    assert server.process.returncode == 0
    assert "Stopped. All decisions are in" in out
    assert "Traceback" not in err


def test_command_opens_the_browser_and_ends_with_ctrl_c(results, monkeypatch, capsys):
    seen = []

    def look(address):
        port = int(address.partition("127.0.0.1:")[2].partition("/")[0])
        seen.append(Client(port, address.partition("token=")[2]).get("/api/session"))
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("webbrowser.open", lambda address: threading.Thread(target=look, args=(address,)).start())
    assert main(["review", str(results.out), "--reader", "ann"]) == 0
    assert seen[0][1]["reader"] == "ann"
    printed = capsys.readouterr().out
    assert "3 scans to review" in printed
    assert "Stopped. All decisions are in" in printed


def test_page_that_was_not_built_says_how_to_build_it(client, monkeypatch, tmp_path):
    monkeypatch.setattr(page_files, "FOLDER", tmp_path)
    monkeypatch.setattr(page_files, "TYPES", {})
    status, _, content = client.raw("GET", "/")
    assert (status, b"was not built" in content) == (200, True)
    assert client.get("/api/session")[1]["has_viewer"] is False
    assert client.raw("GET", "/page/niivue.js")[0] == 404


def test_files_of_the_page_are_served_from_the_list(client, monkeypatch, tmp_path):
    monkeypatch.setattr(page_files, "FOLDER", tmp_path)
    monkeypatch.setattr(page_files, "TYPES", {"app.js": "text/javascript", "niivue.js": "text/javascript"})
    for name in ("index.html", *page_files.TYPES, "secret.txt"):
        (tmp_path / name).write_text(name)
    assert client.raw("GET", "/")[2] == b"index.html"
    status, headers, content = client.raw("GET", "/page/app.js")
    assert (status, headers["content-type"], content) == (200, "text/javascript; charset=utf-8", b"app.js")
    assert client.raw("GET", "/page/secret.txt")[0] == 404
    assert client.get("/api/session")[1]["has_viewer"] is True


@pytest.mark.parametrize("port", ["70000", "-1", "x", "１"])
def test_port_that_is_none_is_refused(port, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["review", "out", "--port", port])
    assert "is not a port" in capsys.readouterr().err


def test_folder_without_results_says_to_count_first(tmp_path, capsys):
    assert main(["review", str(tmp_path), "--no-browser"]) == 2
    assert "Count first" in capsys.readouterr().err


def test_export_of_the_page_names_its_files(client):
    client.post("/api/scan/0/decisions", candidate=1, verdict="lesion")
    _, answer = client.post("/api/export")
    assert answer["files"] == ["reviewed_counts.tsv", "reviewed_lesions.tsv", "reviews/ann/a_accepted.nii.gz"]
