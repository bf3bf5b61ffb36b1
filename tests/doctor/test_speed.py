"""When pictures are said to load slowly, why, and what is proposed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from yolov9kit.data.checked import Checked, PictureFacts
from yolov9kit.data.findings import Finding
from yolov9kit.doctor import speed as module
from yolov9kit.doctor.speed import SLOW_MS, loader_findings


def facts(count: int, ms: float, wh: tuple[int, int] = (640, 480), kind: str = "JPEG") -> dict[Path, Checked]:
    names = (Path(f"/absent/{kind} {wh[0]}/{i}.jpg") for i in range(count))
    return {path: Checked(wh, kind=kind, mode="RGB", decode_ms=ms) for path in names}


def only(checked: dict[Path, Checked], image_size: int = 640) -> Finding:
    (finding,) = loader_findings(checked, image_size, cores=8)
    return finding


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measures a single picture instead of 0.3 s."""
    measure = module.suggest_workers
    monkeypatch.setattr(module, "suggest_workers", lambda *given: measure(*given, seconds=0.0))


@pytest.mark.parametrize(
    ("count", "ms"), [(0, 0.0), (10_000, 5.0), (1000, SLOW_MS - 1), (20, 200.0), (1, 4000.0)]
)
def test_nothing_is_said_of_ordinary_sets(count: int, ms: float) -> None:
    assert loader_findings(facts(count, ms)) == []


def test_nothing_is_said_of_unreadable_pictures() -> None:
    assert (
        loader_findings({Path(f"{i}.jpg"): Checked((0, 0), "empty", decode_ms=90.0) for i in range(900)})
        == []
    )


def test_nothing_is_said_of_drawn_boards(root: Path) -> None:
    paths = sorted((root / "sample_data/pcb/images/train").iterdir())
    assert loader_findings(dict(zip(paths, PictureFacts(None).check(paths), strict=True))) == []


def test_huge_pictures() -> None:
    finding = only(facts(90, 150.0, (4000, 3000)) | facts(10, 10.0))
    assert (finding.code, finding.severity, finding.value) == ("loader_slow", "note", "136.0 ms")
    assert finding.path == Path("/absent")
    assert "136 ms a picture to decode, 14 s in every epoch" in finding.message
    assert (
        "90 of 100 are longer than 1280 px, up to 4000 x 3000; save them with 1280 px at most"
        in finding.message
    )
    assert "Workers suggested: " in finding.message and "one process prepares" in finding.message


def test_size_counts_against_the_input() -> None:
    assert "longer than 1280 px" in only(facts(300, 50.0, (2000, 1500))).message
    assert "longer than" not in only(facts(300, 50.0, (2000, 1500)), image_size=1024).message


def test_slow_formats() -> None:
    message = only(facts(100, 60.0, kind="PNG") | facts(100, 60.0, kind="TIFF") | facts(100, 5.0)).message
    assert "200 of 300 are PNG and TIFF, which decodes slower than JPEG; save them as JPEG" in message


def test_neither_is_to_blame() -> None:
    assert "cache ram" in only(facts(300, 60.0)).message


def test_workers_come_from_measuring_these_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    decode: Callable[[Path], object] = module.read_image
    monkeypatch.setattr(module, "read_image", lambda path: (read.append(path), decode(path)))
    paths = [tmp_path / f"{i}.png" for i in range(40)]
    for path in paths:
        Image.new("RGB", (64, 48)).save(path)
    checked = {
        path: Checked((64, 48), kind="PNG", mode="RGB", decode_ms=900.0 + i) for i, path in enumerate(paths)
    }
    (finding,) = loader_findings(checked, cores=1)
    assert (
        "Workers suggested: 0 (one process prepares" in finding.message
        and "no second core" in finding.message
    )
    assert read and set(read) < set(paths)
    read.clear()
    loader_findings(checked, cores=8, sample=paths[7:8])
    assert set(read) == {paths[7]}
