"""Files of torch.save: what is read, what is refused, and that a damaged file is an error in two lines."""

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.model.foreign_files import (
    OFFICIAL_CLASSES,
    importable,
    legacy_file,
    lightning,
    middle_of_a_run,
    module_of,
    save_module,
    zip_file,
)
from yolov9kit.errors import CheckpointError
from yolov9kit.model.pickles import module_tensors, read_pickle, shown
from yolov9kit.model.unpickler import Name, Shell

FORMATS = [
    pytest.param({}, id="zip"),
    pytest.param({"_use_new_zipfile_serialization": False}, id="legacy"),
    *(pytest.param({"pickle_protocol": n}, id=f"zip-protocol-{n}") for n in (3, 4, 5)),
    pytest.param({"_use_new_zipfile_serialization": False, "pickle_protocol": 4}, id="legacy-protocol-4"),
]
DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool),
]


def refusal(path: Path, admit: tuple[str, ...] = ()) -> str:
    """The message, which must name the file and have at most two lines of readable length."""
    with pytest.raises(CheckpointError) as caught:
        read_pickle(path, admit)
    return checked(caught.value, path)


def checked(error: CheckpointError, path: Path) -> str:
    message = str(error)
    lines = message.split("\n")
    assert message.startswith(f"{path}: ") and len(lines) <= 2
    assert all(len(line) < 700 and line.isprintable() for line in lines)
    return message


# ------------------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize("options", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_kind(tmp_path: Path, dtype: torch.dtype, options: dict[str, Any]) -> None:
    whole = (torch.rand(4, 6) * 100).to(dtype)
    saved = {
        "whole": whole,
        "row": whole[1],
        "turned": whole.T,
        "every second": whole[:, ::2],
        "channels last": whole.view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
        "one": whole[2, 3],
        "none": whole[:0],
        "expanded": whole[:1].expand(5, 6),
    }
    torch.save(saved, tmp_path / "a.pt", **options)
    found = read_pickle(tmp_path / "a.pt")
    assert list(found) == list(saved)
    for name, tensor in saved.items():
        assert found[name].dtype == dtype and torch.equal(found[name], tensor), name


@pytest.mark.parametrize("options", FORMATS)
def test_parameters_and_state_dicts(tmp_path: Path, options: dict[str, Any]) -> None:
    layer = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    layer[0].weight.remark = "has a state"  # type: ignore[union-attr] # a parameter with attributes is pickled otherwise
    torch.save(
        {"state": layer.state_dict(), "parameters": list(layer.parameters())}, tmp_path / "a.pt", **options
    )
    found = read_pickle(tmp_path / "a.pt")
    assert isinstance(found["state"], OrderedDict)
    assert all(torch.equal(found["state"][key], tensor) for key, tensor in layer.state_dict().items())
    assert all(torch.equal(a, b) for a, b in zip(found["parameters"], layer.parameters(), strict=True))


@pytest.mark.parametrize("options", FORMATS[:2])
def test_what_else_lies_in_files_is_read_and_inert(tmp_path: Path, options: dict[str, Any]) -> None:
    saved = {"model": {"w": torch.ones(2)}, **middle_of_a_run(), "lightning": lightning({"w": torch.ones(2)})}
    torch.save(saved, tmp_path / "a.pt", **options)
    found = read_pickle(tmp_path / "a.pt")
    assert list(found) == list(saved)
    assert found["epoch"] == 12 and found["version"] is not None
    assert found["opt"]["lr"] == 0.01 and found["args"].state["data"] == "x.yaml"
    assert found["args"].state["shape"] == (1, 2)
    assert found["optimizer"]["param_groups"][0]["momentum"] == 0.9
    assert isinstance(found["optimizer"]["state"][0]["momentum_buffer"], Tensor)
    for key in ("best_fitness", "fitness", "count", "date", "day", "device"):
        assert type(found[key]) is Shell, key
    assert found["kinds"] == {
        Name("__builtin__.long"),
        Name("__builtin__.unicode"),
        Name("__builtin__.float"),
    }
    assert found["lightning"]["state_dict"]["w"].tolist() == [1, 1]


@pytest.mark.parametrize("options", FORMATS)
def test_pickled_modules(tmp_path: Path, options: dict[str, Any]) -> None:
    state = {"model.0.conv.weight": torch.rand(2, 3, 1, 1), "model.0.bn.running_mean": torch.rand(2)}
    with importable(OFFICIAL_CLASSES) as classes:
        save_module({"model": module_of(state, classes, ["a"])}, tmp_path / "a.pt", **options)
    model = read_pickle(tmp_path / "a.pt")["model"]
    assert model.full_name == "models.yolo.DetectionModel" and model.state["names"] == ["a"]
    tensors = module_tensors(model)
    assert list(tensors) == list(state)  # the buffer that is not persistent is none of them
    assert all(torch.equal(tensors[key], state[key]) for key in state)


def test_the_end_of_an_archive_among_the_numbers_makes_no_archive(tmp_path: Path) -> None:
    """Any bytes may stand in weights, those of an empty archive too; read_pickle took such a file for one."""
    state = {"a": torch.tensor([*b"PK\x05\x06", *bytes(18)], dtype=torch.uint8), "b": torch.rand(3)}
    for number, options in enumerate([{}, {"_use_new_zipfile_serialization": False}]):
        path = tmp_path / f"{number}.pt"
        torch.save(state, path, **options)
        assert zipfile.is_zipfile(path)
        assert all(torch.equal(read_pickle(path)[key], tensor) for key, tensor in state.items())


def test_a_real_file_is_read_to_the_last_number(shared: Path) -> None:
    """Nearly all bytes of its storages are weights; the rest are those of plain attributes."""
    path = shared / "checkpoints" / "official-yolov9-t-deeppcb.pt"
    tensors = module_tensors(read_pickle(path)["model"])
    with zipfile.ZipFile(path) as archive:
        numbers = sum(info.file_size for info in archive.infolist() if "/data/" in info.filename)
    assert len(tensors) == 1772
    assert 0.9 < sum(t.numel() * t.element_size() for t in tensors.values()) / numbers <= 1


# -------------------------------------------------------------------------------------- what is refused


class _Act:
    """Runs a function when it is unpickled without care."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def wrappings(content: object) -> dict[str, object]:
    return {
        "alone": content,
        "in the dict": {"model": {"w": torch.ones(1)}, "x": content},
        "as a key": {content: 1},
        "deep": [[({"a": [content]},)]],
        "as an argument": _Act(print, _Act(print, content)),
    }


@pytest.mark.parametrize("wrapping", wrappings(None))
@pytest.mark.parametrize("options", FORMATS)
def test_w09_a_pickle_that_would_act_does_not(tmp_path: Path, options: dict[str, Any], wrapping: str) -> None:
    marker = tmp_path / "marker"
    path = tmp_path / "evil weights.pt"
    content = _Act(os.mkdir, str(marker))
    torch.save(wrappings(content)[wrapping], path, **options)
    message = refusal(path)
    assert not marker.exists()
    assert (
        f"{os.mkdir.__module__}.mkdir" in message
        or "builtins.print" in message
        or "__builtin__.print" in message
    )
    assert "Nothing was executed" in message and "--admit" not in message
    torch.load(path, weights_only=False)  # the file does act where nobody takes care
    assert marker.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_w09_plain_pickles(tmp_path: Path, protocol: int) -> None:
    marker, path = tmp_path / "marker", tmp_path / "evil.pt"
    path.write_bytes(pickle.dumps(_Act(os.mkdir, str(marker)), protocol))
    assert "mkdir" in refusal(path)
    assert not marker.exists()


def test_setting_state_runs_nothing(tmp_path: Path) -> None:
    """``BUILD`` calls ``__setstate__`` or writes attributes: here it can do neither to anything but a shell."""
    marker = tmp_path / "marker"
    target = b"cmodels.common\nConv\n)\x81"
    state = b"}X\x0c\x00\x00\x00__setstate__cposix\nsystem\ns"
    assert "posix.system" in refusal(zip_file(tmp_path / "a.pt", b"\x80\x02" + target + state + b"b."))
    state = b"}X\x09\x00\x00\x00__class__cmodels.common\nSP\ns"
    shell = read_pickle(zip_file(tmp_path / "b.pt", b"\x80\x02" + target + state + b"b."))
    assert type(shell) is Shell and shell.full_name == "models.common.Conv"
    assert not marker.exists()


def test_w08_unknown_classes_offer_the_named_import(tmp_path: Path) -> None:
    path = tmp_path / "my old net.pt"
    with importable({"labs.nets": ("Net", "Block", "Cell")}) as classes:
        torch.save({"model": module_of({"a.w": torch.ones(2), "b.w": torch.ones(2)}, classes, ["x"])}, path)
    message = refusal(path)
    first, second = message.split("\n")
    assert "pickled model" in first and "labs.nets.Net" in first and "Nothing was executed" in first
    names = second.partition("yolov9kit convert ")[2].split(" --admit ")[1:]
    assert names[0] == "labs.nets.Net" and f"'{path}'" in second  # quoted for the shell: the name has spaces
    found = read_pickle(path, names)
    assert set(module_tensors(found["model"])) == {"a.w", "b.w"}
    assert "labs.nets.Net" in refusal(path, tuple(names[1:]))


def test_one_name_may_be_given_as_text(tmp_path: Path) -> None:
    path = zip_file(tmp_path / "a.pt", b"\x80\x02clabs\nNet\n)R.")
    assert read_pickle(path, "labs.Net").full_name == "labs.Net"


@pytest.mark.parametrize(
    "full", ["labs\x1b[31m.Net", "labs.\x00Net", "labs.Net" + "t" * 100_000, "labs.N\net", "实.网"]
)
def test_strange_names_stay_in_their_lines(tmp_path: Path, full: str) -> None:
    parts = b"".join(b"X" + struct.pack("<I", len(p.encode())) + p.encode() for p in full.split(".", 1))
    assert "refused" in refusal(zip_file(tmp_path / "a.pt", b"\x80\x04" + parts + b"\x93)R."))


# ------------------------------------------------------------------------------------ damage and traps

ONE_TENSOR = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00K\x04\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR."
)


def test_storages_must_be_whole(tmp_path: Path) -> None:
    whole = struct.pack("<4f", 1, 2, 3, 4)
    assert read_pickle(zip_file(tmp_path / "a.pt", ONE_TENSOR, {"0": whole})).tolist() == [1, 2, 3, 4]
    assert read_pickle(legacy_file(tmp_path / "b.pt", ONE_TENSOR, {"0": (4, whole)})).tolist() == [1, 2, 3, 4]
    for storages in ({}, {"0": whole[:-1]}, {"1": whole}):
        assert "damaged" in refusal(zip_file(tmp_path / "a.pt", ONE_TENSOR, storages))
    for described in (
        {},
        {"0": (4, whole[:-1])},
        {"0": (3, whole)},
        {"0": (5, whole)},
        {"0": (-4, whole)},
        {"0": (2**62, whole)},
        {"1": (4, whole)},
        {"0": (4, whole), "1": (4, whole)},
    ):
        assert "damaged" in refusal(legacy_file(tmp_path / "b.pt", ONE_TENSOR, described))


def test_unread_numbers_are_never_shown(tmp_path: Path) -> None:
    """In the old format numbers come after the tensors: a list of storages that leaves one out must not pass."""
    path = legacy_file(tmp_path / "a.pt", ONE_TENSOR, {"0": (4, bytes(16))})
    data = path.read_bytes()
    at = data.rindex(pickle.dumps(["0"], 2))
    path.write_bytes(data[:at] + pickle.dumps([], 2) + data[at + len(pickle.dumps(["0"], 2)) :])
    assert "list of storages" in refusal(path)


@pytest.mark.parametrize("count", [2**31 - 1, 2**40, 2**62, 2**63, 2**100])
@pytest.mark.parametrize("write", [zip_file, legacy_file])
def test_huge_storages(tmp_path: Path, count: int, write: Callable[[Path, bytes], Path]) -> None:
    size = (count.bit_length() // 8 + 1).to_bytes(1, "little") + count.to_bytes(
        count.bit_length() // 8 + 1, "little"
    )
    pickled = ONE_TENSOR.replace(b"cpuK\x04", b"cpu\x8a" + size)
    assert "damaged" in refusal(write(tmp_path / "a.pt", pickled))


def test_many_large_storages_do_not_add_up(tmp_path: Path) -> None:
    """Each storage of an old file may claim as much as the file has, all together not more."""
    one = ONE_TENSOR[2:-1].replace(b"cpuK\x04", b"cpuM\x00\x40")
    many = b"".join(
        one.replace(b"\x01\x00\x00\x000X", b"\x01\x00\x00\x00" + bytes([65 + i]) + b"X") for i in range(20)
    )
    path = legacy_file(tmp_path / "a.pt", b"\x80\x02(" + many + b"t." + b"\x00" * 100_000)
    assert "claims 16,384 values" in refusal(path)


def test_zip_traps(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    whole = struct.pack("<4f", 1, 2, 3, 4)
    bomb = zip_file(path, ONE_TENSOR, {"0": bytes(2**26)}, compressed=True)
    assert bomb.stat().st_size < 2**20
    assert "claims to unpack to 67,10" in refusal(path)

    zip_file(path, ONE_TENSOR, {"0": whole})
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/data/0", bytes(16))
    assert "twice" in refusal(path)

    for root in ("../", "/etc/", "archive/../../"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{root}data.pkl", ONE_TENSOR)
            archive.writestr(f"{root}data/0", whole)
        assert "outside its folder" in refusal(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pt"]

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", ONE_TENSOR)
        archive.writestr("b/data.pkl", ONE_TENSOR)
    assert "2 entries data.pkl" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("weights.pt", b"")
    assert "0 entries data.pkl" in refusal(path) and "unpack it first" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", ONE_TENSOR)
        archive.writestr("a/data/0", whole)
        archive.writestr("a/byteorder", b"big")
    assert "big-endian" in refusal(path)


def test_small_compressed_archives_are_read(tmp_path: Path) -> None:
    path = zip_file(tmp_path / "a.pt", ONE_TENSOR, {"0": struct.pack("<4f", 1, 2, 3, 4)}, compressed=True)
    assert read_pickle(path).tolist() == [1, 2, 3, 4]


def test_encrypted_archives(tmp_path: Path) -> None:
    path = zip_file(tmp_path / "a.pt", ONE_TENSOR, {"0": bytes(16)})
    data = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(mark, at + 4)
    path.write_bytes(data)
    assert "encrypted" in refusal(path)


def test_torchscript(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("net/data.pkl", b"\x80\x02c__torch__\nNet\n)\x81.")
        archive.writestr("net/code/__torch__.py", b"class Net(Module): ...")
        archive.writestr("net/constants.pkl", b"\x80\x02).")
    assert "TorchScript" in refusal(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80", "damaged"),
        (b"\x80\x02", "damaged"),
        (b"\x80\x02.", "damaged"),
        (b"\x80\x02N.", "a plain pickle"),
        (pickle.dumps({"w": 1}), "a plain pickle"),
        (pickle.dumps(0x1950A86A20F9469CFC6C, 2), "ends too early"),
        (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1002, 2), "unknown version"),
        (b"PK\x03\x04" + bytes(100), "its end is missing"),
        (b"PK\x05\x06" + bytes(18), "none of torch.save"),
        (b"ustar" * 100, "starts neither"),
        (bytes(1000), "starts neither"),
    ],
)
def test_other_contents(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "a.pt").write_bytes(data)
    assert why in refusal(tmp_path / "a.pt")


def small_file(**options: Any) -> bytes:
    out = io.BytesIO()
    with importable(OFFICIAL_CLASSES) as classes:
        state = {
            "model.0.conv.weight": torch.rand(4, 3, 3, 3).half(),
            "model.0.bn.running_mean": torch.rand(4),
        }
        saved = {"model": module_of(state, classes, {0: "a", 1: "b"}), "epoch": 3, "x": torch.rand(5)}
        save_module(saved, out, **options)
    return out.getvalue()


@pytest.fixture(scope="module", params=FORMATS[:2])
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    return small_file(**request.param), tmp_path_factory.mktemp("damage") / "weights.pt"


@pytest.fixture(scope="module")
def zipped() -> bytes:
    return small_file()


def readable(path: Path) -> bool:
    """Whether the file is read; any error but the two that are promised goes on to the test."""
    try:
        content = read_pickle(path)
        if isinstance(content, dict) and isinstance(content.get("model"), Shell):
            module_tensors(content["model"])
    except (CheckpointError, ValueError) as error:
        if type(error) is CheckpointError:
            checked(error, path)
        return False
    return True


quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(data=st.data())
def test_every_truncation_is_an_error(small: tuple[bytes, Path], data: st.DataObject) -> None:
    whole, path = small
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert not readable(path)
    path.write_bytes(whole)
    assert readable(path)


@quick
@given(data=st.data())
def test_bit_flips_raise_nothing_else(small: tuple[bytes, Path], data: st.DataObject) -> None:
    whole, path = small
    broken = bytearray(whole)
    for at in data.draw(st.lists(st.integers(0, len(whole) * 8 - 1), min_size=1, max_size=4)):
        broken[at // 8] ^= 1 << at % 8
    path.write_bytes(broken)
    readable(path)


@quick
@given(data=st.data())
def test_bit_flips_inside_the_pickle(zipped: bytes, tmp_path: Path, data: st.DataObject) -> None:
    """Past the checksums of the archive."""
    path = tmp_path / "weights.pt"
    pickled = zipfile.ZipFile(io.BytesIO(zipped)).read("archive/data.pkl")
    broken = bytearray(pickled)
    for at in data.draw(st.lists(st.integers(0, len(pickled) * 8 - 1), min_size=1, max_size=3)):
        broken[at // 8] ^= 1 << at % 8
    readable(zip_file(path, bytes(broken), {str(i): bytes(432) for i in range(10)}))


# ----------------------------------------------------------------------------------------------- modules


def shell(**state: Any) -> Shell:
    made = Shell("models.common.Conv")
    made.state.update(state)
    return made


def test_module_tensors() -> None:
    a, b, c, d = (torch.tensor(float(i)) for i in range(4))
    module = shell(
        _parameters={"w": a, "bias": None},
        _buffers=OrderedDict(mean=b, grid=c, gone=None),
        _non_persistent_buffers_set={"grid"},
        _modules={"inner": shell(_parameters={"w": d}), "none": None},
    )
    assert module_tensors(module) == {"w": a, "mean": b, "inner.w": d}
    assert module_tensors(shell()) == {}


@pytest.mark.parametrize(
    "state",
    [
        {"_modules": 3},
        {"_modules": torch.zeros(2)},
        {"_modules": {"a": 1}},
        {"_modules": {1: shell()}},
        {"_parameters": {"w": "text"}},
        {"_parameters": {"w" * 1000: torch.zeros(1)}},
        {"_buffers": ["a"]},
    ],
)
def test_no_module(state: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="of a module"):
        module_tensors(shell(**state))


def test_modules_that_hold_themselves() -> None:
    circle = shell(_parameters={"w": torch.zeros(1)})
    circle.state["_modules"] = {"a": circle, "b": circle}
    doubled = shell()
    for _ in range(60):  # 2**60 paths in 60 modules
        doubled = shell(_modules={"a": doubled, "b": doubled})
    chain = shell()
    for _ in range(10_000):
        chain = shell(_modules={"a": chain})
    for module in (circle, doubled, chain):
        with pytest.raises(ValueError, match="without end"):
            module_tensors(module)


@given(st.text(max_size=300))
def test_shown_is_one_short_printable_line(text: str) -> None:
    line = shown(text, 50)
    assert line.isprintable() and len(line) <= 53
    assert shown("names stay: 名字") == "names stay: 名字"
