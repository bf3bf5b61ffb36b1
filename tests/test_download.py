"""Downloads against a server of our own on 127.0.0.1: nothing here leaves the machine."""

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from urllib.request import Request

import pytest

from yolov9kit.download import (
    RELEASES,
    Fetched,
    Licence,
    Progress,
    Report,
    Retry,
    _SafeRedirects,
    fetch,
    find_release,
)
from yolov9kit.errors import DownloadError, UsageError

WEIGHTS = b"PK\x03\x04" + bytes(range(256)) * 4096  # begins like a PyTorch file, 1 MiB
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()


@dataclass
class Server:
    """What the server answers with, and what it was asked and sent."""

    body: bytes = WEIGHTS
    etag: str = '"one"'
    status: int = 200
    kind: str = "application/octet-stream"
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)  # bytes after which the next answers break off
    redirect: str = ""
    length: bool = True
    asked: list[dict[str, str]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    address: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(dict(handler.headers.items()))
        if self.redirect:
            handler.send_response(302)
            handler.send_header("Location", self.redirect)
            handler.end_headers()
            return
        status, start = self.status, 0
        wanted, version = handler.headers.get("Range"), handler.headers.get("If-Range")
        if wanted and self.ranges and version in (None, self.etag):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            status = 206 if start < len(self.body) else 416
        body = self.body[start:] if status != 416 else b""
        if self.cuts:
            body = body[: self.cuts.pop(0)]
        self.sent.append(len(body))  # before the answer: the test reads it as soon as that has arrived
        try:
            handler.send_response(status)
            self.send_headers(handler, status, start)
            handler.wfile.write(body)
        except ConnectionError:  # the other side stopped
            pass

    def send_headers(self, handler: BaseHTTPRequestHandler, status: int, start: int) -> None:
        size = len(self.body)
        handler.send_header("Content-Type", self.kind)
        if self.etag:
            handler.send_header("ETag", self.etag)
        if status == 206:
            handler.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if status == 416:
            handler.send_header("Content-Range", f"bytes */{size}")
        if self.length:
            handler.send_header("Content-Length", str(size - start if status != 416 else 0))
        handler.end_headers()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.address = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    listening.shutdown()
    thread.join()
    listening.server_close()


def run(server: Server, folder: Path, name: str = "gelan-c", attempts: int = 3) -> list[Report]:
    return list(fetch(name, folder, base_url=server.address, attempts=attempts, pause_s=0.0, timeout_s=10.0))


def refusal(server: Server, folder: Path, attempts: int = 1) -> str:
    with pytest.raises(DownloadError) as caught:
        run(server, folder, attempts=attempts)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_whole_file(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "weights"
    reports = run(server, folder, "gelan-c.pt")
    target = folder / "gelan-c.pt"
    assert target.read_bytes() == WEIGHTS
    assert left(folder) == {"gelan-c.pt", "gelan-c.pt.sha256"}
    assert (folder / "gelan-c.pt.sha256").read_text() == f"{DIGEST}  gelan-c.pt\n"
    assert isinstance(reports[0], Licence) and reports[1] == Progress(0, len(WEIGHTS))
    done = [report.done for report in reports if isinstance(report, Progress)]
    assert done == sorted(set(done)) and done[-1] == len(WEIGHTS)
    assert reports[-1] == Fetched(target, DIGEST, "fetched, digest remembered")
    assert DIGEST in str(reports[-1]) and "Range" not in server.asked[0]


def test_licence_is_said_before_anything_is_asked(server: Server, tmp_path: Path) -> None:
    reports = fetch("yolov9-c", tmp_path, base_url=server.address)
    first = next(reports)
    assert "GPL-3.0" in str(first) and "WongKinYiu/yolov9" in str(first) and server.address in str(first)
    assert server.asked == []
    reports.close()
    assert server.asked == [] and left(tmp_path) == set()


def test_cut_in_the_middle_goes_on_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000]
    reports = run(server, tmp_path)
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS
    assert server.asked[1]["Range"] == "bytes=300000-" and server.asked[1]["If-Range"] == '"one"'
    assert server.sent == [300_000, len(WEIGHTS) - 300_000]
    assert [report for report in reports if isinstance(report, Retry)] == [
        Retry(f"the connection to {server.address[7:]} broke after 300,000 of {len(WEIGHTS):,} bytes", 2, 3)
    ]


def test_a_later_fetch_goes_on_from_the_part(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000]
    message = refusal(server, tmp_path)
    assert "300,000 bytes are kept in gelan-c.pt.part: fetch again" in message
    assert (tmp_path / "gelan-c.pt.part").read_bytes() == WEIGHTS[:300_000]
    run(server, tmp_path)
    assert server.sent == [300_000, len(WEIGHTS) - 300_000]
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS
    assert left(tmp_path) == {"gelan-c.pt", "gelan-c.pt.sha256"}


def test_stopping_keeps_the_part(server: Server, tmp_path: Path) -> None:
    reports = fetch("gelan-c", tmp_path, base_url=server.address)
    for report in reports:
        if isinstance(report, Progress) and report.done:
            break
    reports.close()
    kept = (tmp_path / "gelan-c.pt.part").stat().st_size
    assert 0 < kept < len(WEIGHTS)
    run(server, tmp_path)
    assert server.asked[1]["Range"] == f"bytes={kept}-"
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS


def test_server_without_ranges_begins_anew(server: Server, tmp_path: Path) -> None:
    server.cuts, server.ranges = [300_000], False
    run(server, tmp_path)
    assert server.sent == [300_000, len(WEIGHTS)]
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_strong_version_nothing_is_mixed(server: Server, tmp_path: Path, etag: str) -> None:
    server.etag, server.cuts = etag, [300_000]
    assert "begins anew" in refusal(server, tmp_path)
    run(server, tmp_path)
    assert "Range" not in server.asked[1]
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS


def test_changed_file_begins_anew(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000]
    refusal(server, tmp_path)
    server.body, server.etag = b"PK" + WEIGHTS[::-1], '"two"'
    run(server, tmp_path)
    assert server.asked[1]["If-Range"] == '"one"'
    assert (tmp_path / "gelan-c.pt").read_bytes() == server.body


def test_part_that_is_already_whole(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000]
    refusal(server, tmp_path)
    (tmp_path / "gelan-c.pt.part").write_bytes(WEIGHTS)
    run(server, tmp_path)
    assert server.sent == [300_000, 0]  # the second answer was 416
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS


def test_part_that_is_too_long_begins_anew(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000]
    refusal(server, tmp_path)
    (tmp_path / "gelan-c.pt.part").write_bytes(WEIGHTS + b"more")
    run(server, tmp_path)
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS


def test_existing_file_is_left_as_it_is(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "gelan-c.pt"
    target.write_bytes(b"mine")
    (report,) = run(server, tmp_path)
    assert report == Fetched(
        target,
        hashlib.sha256(b"mine").hexdigest(),
        "already there, no digest is remembered to compare it with",
    )
    assert target.read_bytes() == b"mine" and server.asked == [] and left(tmp_path) == {"gelan-c.pt"}


def test_existing_file_is_compared_with_its_digest(server: Server, tmp_path: Path) -> None:
    run(server, tmp_path)
    (report,) = run(server, tmp_path)
    assert "digest as remembered" in str(report) and len(server.asked) == 1
    (tmp_path / "gelan-c.pt").write_bytes(WEIGHTS[:-1] + b"?")
    message = refusal(server, tmp_path)
    assert DIGEST in message and "gelan-c.pt.sha256" in message and len(server.asked) == 1


def test_another_digest_than_remembered_is_refused(server: Server, tmp_path: Path) -> None:
    run(server, tmp_path)
    (tmp_path / "gelan-c.pt").unlink()
    assert run(server, tmp_path)[-1] == Fetched(
        tmp_path / "gelan-c.pt", DIGEST, "fetched, digest as remembered"
    )
    (tmp_path / "gelan-c.pt").unlink()
    server.body = WEIGHTS + b"!"
    message = refusal(server, tmp_path)
    assert DIGEST in message and hashlib.sha256(server.body).hexdigest() in message
    assert left(tmp_path) == {"gelan-c.pt.sha256"}


def test_missing_file_on_the_server(server: Server, tmp_path: Path) -> None:
    server.status = 404
    message = refusal(server, tmp_path, attempts=3)
    assert "404" in message and "gelan-c.pt" in message and "Nothing was downloaded" in message
    assert len(server.asked) == 1 and left(tmp_path) == set()


def test_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.status = 503
    assert "503" in refusal(server, tmp_path, attempts=3)
    assert len(server.asked) == 3 and left(tmp_path) == set()


def test_page_instead_of_the_file(server: Server, tmp_path: Path) -> None:
    server.kind, server.body = "text/html; charset=utf-8", b"<html>log in</html>"
    assert "a page (text/html) came instead" in refusal(server, tmp_path)
    assert left(tmp_path) == set()
    server.kind = "application/octet-stream"
    assert "not a weights file" in refusal(server, tmp_path)
    assert left(tmp_path) == set()


def test_page_in_between_leaves_the_part(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000]
    refusal(server, tmp_path)
    server.kind, server.etag = "text/html", '"page"'
    assert "300,000 bytes are kept" in refusal(server, tmp_path)
    assert (tmp_path / "gelan-c.pt.part").stat().st_size == 300_000


def test_answer_without_a_length(server: Server, tmp_path: Path) -> None:
    server.length = False
    assert "does not say how long" in refusal(server, tmp_path)
    assert left(tmp_path) == set()


def test_no_connection(server: Server, tmp_path: Path) -> None:
    closed = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.address = f"http://127.0.0.1:{closed.server_port}"
    closed.server_close()
    message = refusal(server, tmp_path, attempts=3)
    assert message.startswith(f"no connection to 127.0.0.1:{closed.server_port} (")
    assert message.endswith("Nothing was downloaded")
    assert left(tmp_path) == set()


def test_proxy_that_refuses(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.status = 403
    monkeypatch.setenv("https_proxy", server.address)
    with pytest.raises(DownloadError, match=r"no connection to weights\.invalid .*Nothing was downloaded"):
        list(fetch("gelan-c", tmp_path, base_url="https://weights.invalid"))


def test_redirects(server: Server, tmp_path: Path) -> None:
    server.redirect = "ftp://127.0.0.1/gelan-c.pt"
    assert "redirects from http to ftp" in refusal(server, tmp_path)
    server.redirect = "file:///etc/hostname"
    assert "file:///etc/hostname" in refusal(server, tmp_path)
    other = f"{server.address}/elsewhere"
    answer = server.answer

    def once(handler: BaseHTTPRequestHandler) -> None:
        server.redirect = "" if handler.path == "/elsewhere" else other
        answer(handler)

    server.answer = once  # type: ignore[method-assign]
    run(server, tmp_path)
    assert (tmp_path / "gelan-c.pt").read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("old", "new", "followed"),
    [("https", "http", False), ("https", "https", True), ("http", "https", True), ("http", "http", True)],
)
def test_redirects_never_lead_back_to_http(old: str, new: str, followed: bool) -> None:
    redirects, request = _SafeRedirects(), Request(f"{old}://a/x", headers={"Range": "bytes=1-"})
    if followed:
        there = redirects.redirect_request(request, BytesIO(), 302, "", Message(), f"{new}://b/y")
        assert there is not None and there.full_url == f"{new}://b/y"
        assert there.get_header("Range") == "bytes=1-"
    else:
        with pytest.raises(DownloadError, match="redirects from https to http://b/y"):
            redirects.redirect_request(request, BytesIO(), 302, "", Message(), f"{new}://b/y")


def test_disk_that_is_full(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=1000))
    message = refusal(server, tmp_path)
    assert (
        f"{len(WEIGHTS):,} more bytes are needed and 1,000 are free" in message and str(tmp_path) in message
    )


def test_disk_that_fills_up(server: Server, tmp_path: Path) -> None:
    """A process that may write no more than 300,000 bytes gets the system's error in the middle."""
    pytest.importorskip("resource", reason="only Unix limits the size of files")
    script = (
        "import json, resource, signal, sys; sys.path.insert(0, sys.argv[3])\n"
        "from yolov9kit.download import fetch; from yolov9kit.errors import DownloadError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "try: list(fetch('gelan-c', sys.argv[1], base_url=sys.argv[2], attempts=1))\n"
        "except DownloadError as error: print(json.dumps(str(error)))\n"
    )
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), server.address, root],
        capture_output=True,
        text=True,
        check=True,
    )
    message = json.loads(done.stdout)
    assert "File too large" in message and "fetch again" in message


def test_folder_that_is_a_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert str(tmp_path / "file") in refusal(server, tmp_path / "file")


def test_names() -> None:
    assert find_release("yolov9-s").file == "yolov9-s.pt"
    assert find_release(" GELAN-E.pt ").file == "gelan-e.pt"
    assert find_release("v9-t").licence == "MIT"
    assert len(RELEASES) == 5 + 8 + 4
    for name, release in RELEASES.items():
        assert release.file == f"{name}.pt" and release.base_url.startswith("https://github.com/")


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("yolov9-t", "yolov9-t-converted"), ("yolov9c", "yolov9-c"), ("gelan-t", "gelan-"), ("v9-x", "v9-")],
)
def test_unknown_name_lists_all_nearest_first(wrong: str, nearest: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        next(iter(fetch(wrong, tmp_path)))
    message = str(caught.value)
    assert f"did you mean {nearest}" in message and repr(wrong) in message
    assert all(name in message for name in RELEASES)


def test_only_web_addresses(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only http and https"):
        next(iter(fetch("gelan-c", tmp_path, base_url="file:///tmp")))
