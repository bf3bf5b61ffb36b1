"""JPEG on the GPU: who decodes is chosen with a reason, and whoever does, pictures, notes and refusals stay the same.

Here a decoder of the processor stands in for nvJPEG: it gives the pixels of the one decoder. Tests with the mark gpu
ask the real one.
"""

import io
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.waiting import until
from yolov9kit.data import gpu_jpeg
from yolov9kit.data.gpu_jpeg import (
    DevicePicture,
    GpuJpegDecoder,
    JpegEngine,
    JpegFile,
    NoJpegEngine,
    choose_among,
    choose_jpeg_engine,
    read_encoded,
)
from yolov9kit.data.image import decode_image, read_image
from yolov9kit.data.sources import open_source
from yolov9kit.errors import DeviceError, PictureError
from yolov9kit.types import Failed, Picture

MakePicture = Callable[..., Path]
MakeVideo = Callable[..., Path]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torchvision")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def by_torchvision(data: list[Tensor]) -> list[Tensor]:
    from torchvision.io import ImageReadMode, decode_jpeg

    return [decode_jpeg(one, mode=ImageReadMode.RGB) for one in data]


def stand_in(decode: Callable[[list[Tensor]], list[Tensor]] = by_torchvision) -> GpuJpegDecoder:
    return GpuJpegDecoder("cpu", JpegEngine("stand-in", decode, "for tests"))


def refuse(_data: list[Tensor]) -> list[Tensor]:
    raise RuntimeError("nvjpegDecode failed: 5")


def scene(width: int = 80, height: int = 48, shift: int = 0) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack((shift + 150 * x / width, 230 * y / height, 255 - 90 * x / width - 90 * y / height), -1)
    return Image.fromarray(rgb.astype(np.uint8))


def encoded(image: Image.Image | None = None, kind: str = "JPEG", **options: Any) -> bytes:
    stream = io.BytesIO()
    (image or scene()).save(stream, kind, **options)
    return stream.getvalue()


def turned(orientation: int, **options: Any) -> bytes:
    exif = Image.Exif()
    exif[274] = orientation
    return encoded(exif=exif, **options)


MIXED = [
    *(encoded(), encoded(scene().convert("L")), encoded(progressive=True), encoded(kind="PNG")),
    *(encoded(scene().convert("CMYK")), encoded(scene(33, 17), subsampling=0)),
    *(turned(orientation) for orientation in range(1, 9)),
]


def no_reserve(_count: int) -> None:
    pass


def pixels_of(tensor: Tensor) -> np.ndarray:
    assert tensor.dtype == torch.uint8 and tensor.shape[0] == 3 and tensor.is_contiguous()
    return tensor.permute(1, 2, 0).cpu().numpy()


# --- which library


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_only_nvidia_gpus_decode_and_the_reason_is_told(device: str) -> None:
    chosen = choose_jpeg_engine(device)
    assert isinstance(chosen, NoJpegEngine) and f"the device is {device}" in chosen.reason
    with pytest.raises(DeviceError, match=f"JPEG on the GPU: the device is {device}"):
        GpuJpegDecoder(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is an NVIDIA GPU")
def test_without_a_gpu_the_reason_names_every_library() -> None:
    chosen = choose_jpeg_engine("cuda:0")
    assert isinstance(chosen, NoJpegEngine) and len(chosen.reason.splitlines()) == 1
    assert "torchcodec" in chosen.reason and "torchvision" in chosen.reason


def missing() -> Any:
    raise ImportError("cannot import name 'decode_jpeg'")


def wrong_colours(data: list[Tensor]) -> list[Tensor]:
    return [pixels.flip(0) for pixels in by_torchvision(data)]


def shifted(data: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(pixels) if i else pixels for i, pixels in enumerate(by_torchvision(data))]


@pytest.mark.parametrize(
    ("package", "load", "why"),
    [
        ("no-such-package", missing, "no-such-package is not installed"),
        ("numpy", missing, "cannot decode on cpu (cannot import name 'decode_jpeg')"),
        ("numpy", lambda: wrong_colours, "gives wrong pixels"),
        ("numpy", lambda: shifted, "gives wrong pixels"),
        ("numpy", lambda: refuse, "refuses plain files (nvjpegDecode failed: 5)"),
        ("numpy", lambda: lambda _data: [], "cannot decode on cpu"),
    ],
)
def test_what_does_not_decode_right_is_passed_over_and_told(package: str, load: Any, why: str) -> None:
    cpu = torch.device("cpu")
    none = choose_among([(package, load)], cpu)
    assert isinstance(none, NoJpegEngine) and why in none.reason
    assert ("pip install" in none.reason) == ("not installed" in why)
    chosen = choose_among([(package, load), ("pillow", lambda: by_torchvision), ("torch", missing)], cpu)
    assert isinstance(chosen, JpegEngine) and chosen.decode is by_torchvision
    assert chosen.name.startswith("pillow ") and chosen.reason.startswith(
        f"{chosen.name} decodes JPEG on cpu"
    )
    assert why in chosen.reason


# --- pictures


def test_every_kind_of_file_is_what_the_one_decoder_makes_of_it() -> None:
    decoder = stand_in()
    for data, tensor in zip(MIXED, decoder.decode(MIXED), strict=True):
        assert np.array_equal(pixels_of(tensor), read_image(data))
    assert decoder.refused == 0 and decoder.decode([]) == []


def test_one_equals_many() -> None:
    decoder = stand_in()
    for data, tensor in zip(MIXED, decoder.decode(MIXED), strict=True):
        assert torch.equal(decoder.decode([data])[0], tensor)


def test_what_the_engine_gets_has_no_metadata() -> None:
    seen: list[bytes] = []

    def look(data: list[Tensor]) -> list[Tensor]:
        seen.extend(bytes(one.numpy()) for one in data)
        return by_torchvision(data)

    stand_in(look).decode([turned(6, comment=b"secret", icc_profile=b"profile") + b"behind"])
    assert len(seen) == 1 and seen[0].endswith(b"\xff\xd9")
    assert not any(word in seen[0] for word in (b"Exif", b"secret", b"profile", b"behind"))


def test_a_broken_file_raises_what_the_one_decoder_says() -> None:
    for broken in (b"", encoded()[:-40], b"no picture"):
        with pytest.raises(PictureError) as expected:
            decode_image(broken)
        with pytest.raises(PictureError) as caught:
            stand_in().decode([encoded(), broken])
        assert str(caught.value) == str(expected.value)


def test_a_file_that_nvjpeg_refuses_goes_to_the_one_decoder_and_is_counted() -> None:
    files = [encoded(scene(8 * (i + 1), 16)) for i in range(16)]
    calls = 0

    def picky(data: list[Tensor]) -> list[Tensor]:
        nonlocal calls
        calls += 1
        decoded = by_torchvision(data)
        if any(pixels.shape[2] == 8 * 12 for pixels in decoded):
            raise RuntimeError("nvjpegDecodeBatched failed:\n6")
        return decoded

    decoder = stand_in(picky)
    for data, tensor in zip(files, decoder.decode(files), strict=True):
        assert np.array_equal(pixels_of(tensor), read_image(data))
    assert (decoder.refused, decoder.refusal) == (1, "nvjpegDecodeBatched failed: 6")
    assert calls <= 9  # by halves


@pytest.mark.parametrize(
    "odd",
    [
        lambda pixels: pixels[:1],
        lambda pixels: pixels.transpose(1, 2),
        lambda pixels: pixels.float(),
        lambda pixels: pixels[:, 1:],
    ],
)
def test_what_is_no_picture_of_the_stated_size_counts_as_refused(odd: Callable[[Tensor], Tensor]) -> None:
    decoder = stand_in(lambda data: [odd(pixels) for pixels in by_torchvision(data)])
    (tensor,) = decoder.decode([encoded()])
    assert np.array_equal(pixels_of(tensor), read_image(encoded())) and decoder.refused == 1


def test_a_full_gpu_is_no_fault_of_a_picture() -> None:
    def full(_data: list[Tensor]) -> list[Tensor]:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        stand_in(full).decode([encoded()])


# --- files


def test_plain_files_are_read_and_all_others_decoded(tmp_path: Path) -> None:
    (tmp_path / "plain.png").write_bytes(encoded())  # the content counts
    (tmp_path / "other.jpg").write_bytes(encoded(kind="PNG"))
    taken: list[int] = []
    plain = read_encoded(tmp_path / "plain.png", taken.append)
    other = read_encoded(tmp_path / "other.jpg", no_reserve)
    assert isinstance(plain, JpegFile) and plain.content == encoded() and plain.read_ms > 0
    assert taken == [len(plain.content) + len(plain.plain.stream)]
    assert isinstance(other, Picture) and np.array_equal(other.pixels, np.asarray(scene()))


def test_what_cannot_be_read_is_told_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "large.jpg").write_bytes(encoded())
    (tmp_path / "empty.jpg").touch()
    monkeypatch.setattr(gpu_jpeg, "_MAX_FILE_BYTES", 100)
    for name, words in (
        ("pipe.jpg", "a pipe, socket or device"),
        ("folder.jpg", "a folder"),
        ("empty.jpg", "the file is empty"),
        ("none.jpg", "cannot be read (No such file or directory)"),
    ):
        failed = read_encoded(tmp_path / name, no_reserve)
        assert isinstance(failed, Failed) and failed.error.startswith(f"{tmp_path / name}: {words}")
    assert isinstance(read_encoded(tmp_path / "large.jpg", no_reserve), Picture)


# --- whole sources


def flat(batches: Iterator[Sequence[DevicePicture | Failed]]) -> list[Picture | Failed]:
    items = [item for batch in batches for item in batch]
    return [item.picture() if isinstance(item, DevicePicture) else item for item in items]


def check_same(
    found: Sequence[Picture | Failed], expected: Sequence[Picture | Failed], exact: bool = True
) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if isinstance(a, Failed) or isinstance(b, Failed):
            assert a == b
            continue
        facts = [(p.path, p.frame, p.notes, p.video_fps, p.pixels.shape) for p in (a, b)]
        assert facts[0] == facts[1] and a.decode_ms > 0 and a.pixels.flags.c_contiguous
        assert not exact or np.array_equal(a.pixels, b.pixels), a.path


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("decode", [by_torchvision, refuse])
def test_the_hostile_set_is_what_it_is_without_a_gpu(
    threads: int, decode: Callable[[list[Tensor]], list[Tensor]], shared: Path
) -> None:
    folder = shared / "data" / "hostile"
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    source = open_source(files)
    found = flat(stand_in(decode).batches(source, 16, threads))
    check_same(found, list(source))
    assert sum(isinstance(item, Failed) for item in found) > 10 < len(found) // 2


def test_videos_memory_and_failures_keep_their_places(
    make_picture: MakePicture, make_video: MakeVideo, tmp_path: Path
) -> None:
    for i in range(5):
        make_picture(f"set/{i}.jpg", level=40 * i)
    (tmp_path / "set/2.jpg").write_bytes(b"no picture")
    make_video("set/3.avi")
    source = open_source([tmp_path / "set", scene(), "nowhere.jpg", np.zeros((4, 4), np.uint8)])
    batches = list(stand_in().batches(source, 4, 2))
    assert [len(batch) for batch in batches] == [4] * 5
    check_same(flat(iter(batches)), list(source))


def test_a_batch_takes_no_more_than_its_bytes(
    make_picture: MakePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [make_picture(f"{i}.jpg", size=(100, 10)) for i in range(10)]
    monkeypatch.setattr(gpu_jpeg, "BATCH_BYTES", 2 * 3000 + 1)
    assert [len(batch) for batch in stand_in().batches(open_source(files), 8, 2)] == [3, 3, 3, 1]


def test_the_next_batch_is_decoded_while_one_is_used(make_picture: MakePicture) -> None:
    files = [make_picture(f"{i}.jpg") for i in range(40)]
    workers: list[threading.Thread] = []

    def decode(data: list[Tensor]) -> list[Tensor]:
        workers.append(threading.current_thread())
        return by_torchvision(data)

    batches = stand_in(decode).batches(open_source(files), 4, 2)
    next(batches)
    until(lambda: len(workers) == 2, "the second batch waits for the first to be used")
    batches.close()
    assert len(set(workers)) == 1 and workers[0] is not threading.main_thread()
    assert not workers[0].is_alive() and len(workers) == 2
    assert not [thread for thread in threading.enumerate() if thread.name == "pictures ahead"]


def test_a_fault_of_ours_is_raised(make_picture: MakePicture) -> None:
    def broken(_data: list[Tensor]) -> list[Tensor]:
        raise ZeroDivisionError("the fault")

    files = [make_picture(f"{i}.jpg") for i in range(9)]
    with pytest.raises(ZeroDivisionError, match="the fault"):
        list(stand_in(broken).batches(open_source(files), 4, 2))


def test_time_of_decoding_is_shared() -> None:
    items = [JpegFile(str(i), encoded(), gpu_jpeg.plain_jpeg(encoded()), read_ms=10.0 * i) for i in range(4)]  # type: ignore[arg-type]
    made = stand_in().decode_batch(items)
    shares = [p.decode_ms - 10 * i for i, p in enumerate(made) if isinstance(p, DevicePicture)]
    assert len(shares) == 4 and shares == pytest.approx([shares[0]] * 4) and shares[0] > 0


# --- the real thing


def real() -> GpuJpegDecoder:
    decoder = GpuJpegDecoder("cuda:0")
    assert (
        decoder.engine.name.split()[0] in ("torchcodec", "torchvision") and "cuda:0" in decoder.engine.reason
    )
    return decoder


def noise(seed: int, width: int = 320, height: int = 200, grain: int = 8) -> Image.Image:
    """As rough as a photograph: coloured patches of ``grain`` pixels, smoothed."""
    values = np.random.default_rng(seed).integers(
        0, 256, (height // grain, width // grain, 3), dtype=np.uint8
    )
    return Image.fromarray(values).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(
    ("name", "mean", "largest"),
    [("gray", 0.7, 4), ("full colour", 1.2, 8), ("quarter colour", 8, 80)],
)
def test_pixels_are_near_those_of_the_one_decoder(name: str, mean: float, largest: int) -> None:
    files = []
    for seed in range(24):
        image = noise(seed, 320 + 16 * seed, 200 + 8 * seed)
        image = image.convert("L") if name == "gray" else image
        files.append(encoded(image, quality=90, subsampling=2 if name == "quarter colour" else 0))
    decoder = real()
    differences = []
    for file, tensor in zip(files, decoder.decode(files), strict=True):
        expected = read_image(file)
        assert tensor.is_cuda and tensor.shape[1:] == expected.shape[:2]
        differences.append(np.abs(pixels_of(tensor).astype(int) - expected))
    assert decoder.refused == 0
    assert max(float(difference.mean()) for difference in differences) <= mean
    assert max(int(difference.max()) for difference in differences) <= largest


@pytest.mark.gpu
@needs_gpu
def test_pixels_of_photographs_are_near_those_of_the_one_decoder(shared: Path) -> None:
    files = [p for name in ("bccd", "rubik", "coco128") for p in (shared / "data" / name).rglob("*.jpg")]
    contents = [file.read_bytes() for file in sorted(files)[::8]]
    for content, tensor in zip(contents, real().decode(contents), strict=True):
        difference = np.abs(pixels_of(tensor).astype(int) - read_image(content))
        assert difference.mean() <= 2.5 and difference.max() <= 140


@pytest.mark.gpu
@needs_gpu
def test_every_orientation_on_the_gpu() -> None:
    files = [turned(orientation, quality=95, subsampling=0) for orientation in range(1, 9)]
    for file, tensor in zip(files, real().decode(files), strict=True):
        expected = read_image(file)
        assert tuple(tensor.shape[1:]) == expected.shape[:2]
        assert np.abs(pixels_of(tensor).astype(int) - expected).mean() < 2


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("threads", [1, 4])
def test_the_hostile_set_on_the_gpu(threads: int, shared: Path) -> None:
    files = sorted(p for p in (shared / "data" / "hostile").rglob("*") if p.is_file())
    source = open_source(files)
    check_same(flat(real().batches(source, 16, threads)), list(source), exact=False)


@pytest.mark.gpu
@needs_gpu
def test_memory_of_the_gpu_stays_as_it_is() -> None:
    decoder, files = real(), [encoded(noise(seed)) for seed in range(32)]
    for _round in range(5):
        decoder.decode(files)
    torch.cuda.synchronize()
    free, allocated = torch.cuda.mem_get_info(0)[0], torch.cuda.memory_allocated(0)
    for _round in range(100):
        decoder.decode(files)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated(0) == allocated
    assert free - torch.cuda.mem_get_info(0)[0] < 64 * 2**20


@pytest.mark.gpu
@needs_gpu
def test_no_memory_is_overwritten_that_is_still_read() -> None:
    decoder, file = real(), encoded(noise(1, 640, 640))
    for _round in range(20):
        victims = [torch.full((3, 640, 640), 7, dtype=torch.uint8, device="cuda:0") for _ in range(4)]
        torch.cuda.synchronize()
        torch.cuda._sleep(50_000_000)  # work that is still queued when the memory is let go
        sums = [victim.sum(dtype=torch.int64) for victim in victims]
        del victims
        decoder.decode([file] * 4)
        assert [int(value) for value in sums] == [7 * 3 * 640 * 640] * 4


@pytest.mark.gpu
@needs_gpu
def test_batches_beside_other_work_are_right(make_picture: MakePicture, tmp_path: Path) -> None:
    files = []
    for seed in range(96):
        files.append(tmp_path / f"{seed:02}.jpg")
        files[-1].write_bytes(encoded(noise(seed), quality=95))
    decoder = real()
    expected = decoder.decode([file.read_bytes() for file in files])
    torch.cuda.synchronize()
    results = []
    for batch in decoder.batches(open_source(files), 8, 4):
        torch.cuda._sleep(20_000_000)  # the pixels are used late, and let go before that
        results += [item.pixels.sum(dtype=torch.int64) for item in batch if isinstance(item, DevicePicture)]
        del batch
    assert [int(value) for value in results] == [int(pixels.sum(dtype=torch.int64)) for pixels in expected]
