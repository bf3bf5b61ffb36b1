"""Downloads a released weights file, on request only. Nothing else in the library opens a connection.

``fetch`` is an iterator of reports: the licence before the first byte, then the progress, then the file. To
stop, stop iterating. What has arrived stays in ``NAME.part``, and the next fetch of the same name goes on
from there, unless the server's file has changed since. The SHA-256 of a finished file is remembered beside it
in ``NAME.sha256``, in the form that ``sha256sum -c`` reads; a later download that differs is refused.
"""

import hashlib
import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from email.message import Message
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from yolov9kit.errors import DownloadError, UsageError

_CHUNK_BYTES = 2**18


@dataclass(frozen=True)
class Release:
    """One public weights file: ``file`` under ``base_url``, published by ``project`` under ``licence``."""

    file: str
    project: str
    base_url: str
    licence: str


@dataclass(frozen=True)
class Licence:
    """Said before the transfer begins."""

    release: Release
    url: str

    def __str__(self) -> str:
        release = self.release
        return (
            f"{release.file} is published by {release.project} under {release.licence}; "
            f"that licence is not the one of yolov9kit. Fetching {self.url}"
        )


@dataclass(frozen=True)
class Progress:
    """Bytes that have arrived, those of an earlier and interrupted fetch included, of how many."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"{self.done / 2**20:.1f} of {self.total / 2**20:.1f} MiB"


@dataclass(frozen=True)
class Retry:
    """The connection broke; the transfer goes on after a pause."""

    reason: str
    attempt: int
    attempts: int

    def __str__(self) -> str:
        return f"{self.reason}; attempt {self.attempt} of {self.attempts} follows"


@dataclass(frozen=True)
class Fetched:
    """The last report: where the file lies. ``note`` says what its digest was compared with."""

    path: Path
    sha256: str
    note: str

    def __str__(self) -> str:
        return f"{self.path}: {self.note}, SHA-256 {self.sha256}"


Report = Licence | Progress | Retry | Fetched


def _releases() -> Iterator[tuple[str, Release]]:
    official = "https://github.com/WongKinYiu/yolov9/releases/download/v0.1"
    rewrite = "https://github.com/MultimediaTechLab/YOLO/releases/download/v1.0-alpha"
    names = [f"yolov9-{size}-converted" for size in "tsmce"]
    names += [f"{family}-{size}" for family in ("yolov9", "gelan") for size in "smce"]
    for name in names:
        yield name, Release(f"{name}.pt", "WongKinYiu/yolov9", official, "GPL-3.0")
    for size in "tsmc":
        yield f"v9-{size}", Release(f"v9-{size}.pt", "MultimediaTechLab/YOLO", rewrite, "MIT")


# "yolov9-c" is the training form with its auxiliary branch, "yolov9-c-converted" and "gelan-c" are deployed.
RELEASES: Mapping[str, Release] = MappingProxyType(dict(_releases()))


def find_release(name: str) -> Release:
    """The release called ``name``, with or without ``.pt``.

    Raises UsageError that lists every name, the nearest first.
    """
    wanted = name.strip().lower().removesuffix(".pt")
    if wanted in RELEASES:
        return RELEASES[wanted]

    def distance(known: str) -> tuple[bool, float]:
        return not (wanted and known.startswith(wanted)), -SequenceMatcher(None, wanted, known).ratio()

    nearest, *others = sorted(RELEASES, key=distance)
    raise UsageError(f"no release is called {name!r}: did you mean {nearest}? Others: {', '.join(others)}")


def fetch(
    name: str,
    folder: str | os.PathLike[str],
    *,
    base_url: str | None = None,
    attempts: int = 5,
    pause_s: float = 2.0,
    timeout_s: float = 30.0,
) -> Generator[Report, None, None]:
    """Downloads the release ``name`` into ``folder``, which is made if need be.

    An existing file is left as it is; its digest is compared with the remembered one.

    Args:
        name: a key of ``RELEASES``, with or without ``.pt``.
        folder: where the file goes.
        base_url: another place for the same files, such as a mirror: ``BASE_URL/NAME.pt``.
        attempts: how many connections are tried before giving up; each goes on where the last one broke.
        pause_s: seconds before the second attempt, doubled for each further one.
        timeout_s: seconds without a byte after which a connection counts as broken.

    Yields Licence, then Progress (and Retry), then Fetched.

    Raises UsageError for an unknown name, DownloadError for whatever keeps the file from arriving whole.
    """
    release = find_release(name)
    target = Path(folder) / release.file
    url = f"{(base_url or release.base_url).rstrip('/')}/{release.file}"
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"{url}: only http and https addresses can be fetched")
    transfer = _Transfer(url, target, timeout_s)
    try:
        if target.exists():
            yield _existing(target)
            return
        yield Licence(release, url)
        target.parent.mkdir(parents=True, exist_ok=True)
        yield from _persist(transfer, attempts, pause_s)
        yield _finish(transfer, target)
    except OSError as fault:
        raise DownloadError(f"{target}: {fault.strerror or fault}. {transfer.kept()}") from fault


class _BrokenError(Exception):
    """The connection broke or the server was busy: worth another attempt."""


class _Transfer:
    """One file on its way: the bytes in ``NAME.part``, and beside it what the server said of them."""

    def __init__(self, url: str, target: Path, timeout_s: float) -> None:
        self.url = url
        self.host = urlsplit(url).netloc
        self.part = target.with_name(target.name + ".part")
        self.state = target.with_name(target.name + ".part.version")
        self.timeout_s = timeout_s
        self.connected = False

    def done(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def kept(self) -> str:
        done = self.done()
        if not done:
            return "Nothing was downloaded"
        if not self.validator():
            return f"{done:,} bytes arrived, but the server names no version: the next fetch begins anew"
        return f"{done:,} bytes are kept in {self.part.name}: fetch again to go on from there"

    def validator(self) -> str:
        """What the server called the version that the part belongs to; empty where that is not known."""
        lines = self.state.read_text(encoding="utf-8").splitlines() if self.state.exists() else []
        return lines[1] if len(lines) == 2 and lines[0] == self.url else ""

    def restart(self, headers: Message) -> None:
        """Forgets the part and remembers the version that comes now."""
        etag = headers.get("ETag", "")
        strong = etag if not etag.startswith("W/") else ""  # a weak tag does not promise equal bytes
        self.part.unlink(missing_ok=True)
        self.state.write_text(f"{self.url}\n{strong or headers.get('Last-Modified', '')}\n", encoding="utf-8")

    def forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.state.unlink(missing_ok=True)

    def request(self) -> urllib.request.Request:
        request = urllib.request.Request(self.url, headers={"User-Agent": "yolov9kit"})
        done, validator = self.done(), self.validator()
        if done and validator:  # without a version to compare, old and new bytes could mix
            request.add_header("Range", f"bytes={done}-")
            request.add_header("If-Range", validator)
        return request


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects within one scheme and from http to https, never back to http or into files."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if new not in (old, "https"):
            raise DownloadError(f"{req.full_url} redirects from {old} to {newurl}: not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _persist(transfer: _Transfer, attempts: int, pause_s: float) -> Iterator[Report]:
    for attempt in range(1, attempts + 1):
        try:
            yield from _receive(transfer)
            return
        except _BrokenError as fault:
            if attempt == attempts:
                message = f"{transfer.url}: {fault}, {attempts} attempts failed. {transfer.kept()}"
                raise DownloadError(message) from fault
            yield Retry(str(fault), attempt + 1, attempts)
            time.sleep(pause_s * 2 ** (attempt - 1))


def _receive(transfer: _Transfer) -> Iterator[Report]:
    """One connection, until the file is whole or the connection breaks."""
    response = _connect(transfer)
    if response is None:
        return
    with response:
        transfer.connected = True
        total = _accept(transfer, response)
        done = transfer.done()
        free = shutil.disk_usage(transfer.part.parent).free
        if total - done > free:
            raise DownloadError(
                f"{transfer.part.parent}: {total - done:,} more bytes are needed and {free:,} are free. "
                f"{transfer.kept()}"
            )
        yield Progress(done, total)
        with transfer.part.open("ab") as part:
            while chunk := _read(response):
                part.write(chunk)
                done += len(chunk)
                yield Progress(done, total)
    if done < total:
        raise _BrokenError(f"the connection to {transfer.host} broke after {done:,} of {total:,} bytes")
    if transfer.done() != total:
        transfer.forget()
        raise DownloadError(
            f"{transfer.part}: more bytes than announced, does another fetch run? Start again"
        )


def _connect(transfer: _Transfer) -> http.client.HTTPResponse | None:
    """The answer with the file's bytes, or None where all of them are here already."""
    opener = urllib.request.build_opener(_SafeRedirects)
    try:
        return opener.open(transfer.request(), timeout=transfer.timeout_s)
    except urllib.error.HTTPError as answer:
        with answer:
            _check_refusal(transfer, answer)
        return None
    except urllib.error.URLError as fault:
        message = f"no connection to {transfer.host} ({fault.reason})"
        if transfer.connected:  # lost on the way: it may come back
            raise _BrokenError(message) from fault
        raise DownloadError(f"{message}. {transfer.kept()}") from fault
    except TimeoutError as fault:
        raise _BrokenError(f"{transfer.host} did not answer in {transfer.timeout_s:g} s") from fault
    except (http.client.HTTPException, ConnectionError) as fault:
        raise _BrokenError(f"{transfer.host} closed the connection ({type(fault).__name__})") from fault


def _check_refusal(transfer: _Transfer, answer: urllib.error.HTTPError) -> None:
    """What an answer without the file means. Returning means that the part is the whole file."""
    if answer.code == 416:  # nothing behind the bytes that we have
        if answer.headers.get("Content-Range", "") == f"bytes */{transfer.done()}":
            return
        transfer.forget()
        raise _BrokenError(f"{transfer.host} has another file than the one that was begun")
    if answer.code in (408, 429) or answer.code >= 500:
        raise _BrokenError(f"{transfer.host} answered {answer.code} {answer.reason}")
    raise DownloadError(
        f"{transfer.url}: the server answered {answer.code} {answer.reason}. {transfer.kept()}"
    )


def _accept(transfer: _Transfer, response: http.client.HTTPResponse) -> int:
    """The size of the whole file, after making sure that its bytes come and where they start."""
    headers = response.headers
    kind = headers.get_content_type()
    if kind.startswith("text/"):
        raise DownloadError(
            f"{transfer.url}: a page ({kind}) came instead of the file, perhaps the log-in of a network. "
            f"{transfer.kept()}"
        )
    length = headers.get("Content-Length", "")
    if not length.isdigit():
        raise DownloadError(f"{transfer.url}: the server does not say how long the file is")
    if response.status == 206:
        done = transfer.done()
        total = done + int(length)
        if headers.get("Content-Range", "") == f"bytes {done}-{total - 1}/{total}":
            return total
        transfer.forget()
        raise _BrokenError(f"{transfer.host} sent another part than the one that was asked for")
    transfer.restart(headers)
    return int(length)


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK_BYTES)
    except (http.client.HTTPException, ConnectionError, TimeoutError):
        return b""  # the number of bytes tells that some are missing


def _finish(transfer: _Transfer, target: Path) -> Fetched:
    part = transfer.part
    with part.open("rb") as stream:
        head = stream.read(16)
    if not head.startswith(
        (b"PK", b"\x80")
    ):  # a zip archive or a bare pickle, the two forms of PyTorch's files
        transfer.forget()
        raise DownloadError(f"{transfer.url}: not a weights file, it begins with {head!r}. Thrown away")
    digest, remembered = _sha256(part), _remembered(target)
    if remembered and remembered != digest:
        transfer.forget()
        raise DownloadError(
            f"{target}: SHA-256 {digest} arrived, {_digest_file(target).name} remembers {remembered}. "
            "Thrown away; if the release has really changed, delete that file and fetch again"
        )
    if target.exists():
        raise DownloadError(f"{target}: another file of this name appeared meanwhile and was left as it is")
    os.replace(part, target)
    transfer.forget()
    _digest_file(target).write_text(f"{digest}  {target.name}\n", encoding="utf-8")
    return Fetched(target, digest, "fetched, digest " + ("as remembered" if remembered else "remembered"))


def _existing(target: Path) -> Fetched:
    digest, remembered = _sha256(target), _remembered(target)
    if not remembered:
        return Fetched(target, digest, "already there, no digest is remembered to compare it with")
    if remembered != digest:
        raise DownloadError(
            f"{target}: SHA-256 {digest} is not {remembered}, which {_digest_file(target).name} remembers. "
            "The file is damaged or another one: move it away and fetch again"
        )
    return Fetched(target, digest, "already there, digest as remembered")


def _digest_file(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _remembered(target: Path) -> str:
    try:
        words = _digest_file(target).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return ""
    return words[0] if words else ""


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
