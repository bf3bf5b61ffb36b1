"""The pickle reader that cannot act: what it reads equals what pickle wrote, and nothing else happens."""

import builtins
import io
import math
import os
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from yolov9kit.model.pickles import SHELLS
from yolov9kit.model.unpickler import Name, RefusedError, Shell, Unpickler, could_act

ADMITTED = frozenset({"shop.Basket", "shop.Item"})


def read(data: bytes, admitted: frozenset[str] = ADMITTED) -> Any:
    def storage(key: str, dtype: torch.dtype, count: int) -> Tensor:
        if count > 100:
            raise EOFError(key)
        return torch.zeros(count, dtype=dtype)

    return Unpickler(io.BytesIO(data), storage, admitted).load()


def name(full: str) -> bytes:
    """The instructions that push a name (protocol 4)."""
    module, _, attribute = full.rpartition(".")
    return (
        b"".join(b"X" + struct.pack("<I", len(part)) + part.encode() for part in (module, attribute))
        + b"\x93"
    )


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


# -------------------------------------------------------------------------------------- it reads pickles

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(allow_nan=False),
    st.text(max_size=300),
)
keys = st.one_of(st.text(max_size=5), st.integers(), st.tuples(st.integers(), st.text(max_size=3)), st.none())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(keys, inner, max_size=5),
        st.lists(inner, max_size=5).map(tuple),
        st.sets(keys, max_size=4),
        st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
    ),
    max_leaves=30,
)


@given(value=values, protocol=st.integers(2, 5))
def test_plain_values_are_read_as_pickle_reads_them(value: object, protocol: int) -> None:
    found = read(pickle.dumps(value, protocol))
    assert found == value and type(found) is type(value)


@given(data=st.binary(max_size=300), protocol=st.integers(3, 5), many=st.booleans())
def test_bytes(data: bytes, protocol: int, many: bool) -> None:
    data = data * 2 if many else data
    assert read(pickle.dumps([data, bytearray(data)] if protocol == 5 else [data], protocol))[0] == data


def test_one_object_in_many_places_stays_one() -> None:
    shared = [1, 2]
    found = read(pickle.dumps({"a": shared, "b": shared, "long": [str(i) for i in range(1000)] * 2}, 2))
    assert found["a"] is found["b"]
    itself: list[object] = []
    itself.append(itself)
    found = read(pickle.dumps(itself, 4))
    assert found[0] is found


def test_objects_become_shells_with_their_state() -> None:
    built = name("shop.Basket") + b")\x81}" + text("size") + b"K\x07sb"
    shell = read(b"\x80\x04" + built + b".")
    assert type(shell) is Shell and shell.full_name == "shop.Basket" and shell.state == {"size": 7}
    for made in (b"(" + name("shop.Basket") + b"o.", b"(ishop\nBasket\n.", name("shop.Basket") + b")}\x92."):
        assert type(read(b"\x80\x02" + made)) is Shell
    slots = read(name("shop.Item") + b")\x81N}" + text("a") + b"Ns\x86b.")  # state and slots
    assert slots.state == {"a": None}
    mapping = read(name("shop.Item") + b")\x81" + text("a") + b"K\x01s.")
    assert mapping.state == {"a": 1}
    assert read(name("shop.Item") + b".") == Name("shop.Item")
    with_source = (
        b"(" + text("module") + name("shop.Item") + text("shop.py") + text("import os") + b"tQ)\x81."
    )
    assert read(with_source).full_name == "shop.Item"


# --------------------------------------------------------------------------------------- it cannot act

ACTING = [
    "os.system",
    "posix.system",
    "nt.system",
    "subprocess.Popen",
    "subprocess.call",
    "subprocess.check_output",
    "pty.spawn",
    "builtins.eval",
    "builtins.exec",
    "builtins.getattr",
    "builtins.setattr",
    "builtins.__import__",
    "builtins.open",
    "builtins.compile",
    "builtins.vars",
    "builtins.globals",
    "builtins.type",
    "builtins.map",
    "builtins.apply",
    "__builtin__.eval",
    "__builtin__.getattr",
    "importlib.import_module",
    "importlib.reload",
    "runpy.run_path",
    "runpy.run_module",
    "code.interact",
    "pickle.loads",
    "_pickle.loads",
    "functools.partial",
    "functools.reduce",
    "operator.attrgetter",
    "operator.methodcaller",
    "operator.itemgetter",
    "types.FunctionType",
    "types.CodeType",
    "shutil.rmtree",
    "ctypes.CDLL",
    "socket.socket",
    "webbrowser.open",
    "marshal.loads",
    "timeit.timeit",
    "bdb.Bdb",
    "copyreg._reconstructor",
    "copy_reg._reconstructor",
    "copyreg.__newobj__",
    "copyreg.add_extension",
    "sys.exit",
    "torch.load",
    "torch.hub.load",
    "torch.hub._load_local",
    "torch.jit.load",
    "torch.package.PackageImporter",
    "torch.save",
    "torch.serialization.load",
    "torch.storage._load_from_bytes",
    "torch.utils.cpp_extension.load",
    "torch.from_file",
    "torch.ops.load_library",
    "torch.classes.load_library",
    "torch._utils._import_dotted_name",
    "torch.distributed.run.main",
    "torch._tensor._rebuild_from_type_v2",
    "torch.utils.data._utils.worker._worker_loop",
    "torch._dynamo.eval_frame.run",
    "numpy.load",
    "numpy.fromfile",
    "numpy.memmap",
    "numpy.loadtxt",
    "numpy.testing.runstring",
    "numpy.f2py.crackfortran.getlincoef",
    "numpy.core.multiarray.fromfile",
    "numpy.lib.npyio.load",
    "numpy._core.numeric._frombuffer",
    "models.common.Conv.__init__.__globals__",
    "models.common.Conv.__class__",
    "collections.OrderedDict.__init__",
    "torch._utils._rebuild_tensor_v2.__globals__",
    "torch.Size.__class__.__base__",
    "argparse.Namespace.__reduce__",
    "torch.nn.modules.conv.Conv2d.__init__.__globals__",
    "__main__.__builtins__",
    "yolo9.__loader__.load_module",
]


@pytest.mark.parametrize("full", ACTING)
@pytest.mark.parametrize(
    "call", [b"(tR.", b")\x81.", b")}\x92.", b"."], ids=["reduce", "newobj", "newobj_ex", "name"]
)
def test_what_can_act_is_refused_by_name(full: str, call: bytes) -> None:
    for pickled in (
        name(full) + call,
        b"\x80\x02c"
        + full.rpartition(".")[0].encode()
        + b"\n"
        + full.rpartition(".")[2].encode()
        + b"\n"
        + call,
    ):
        with pytest.raises(RefusedError) as caught:
            read(pickled, SHELLS)
        assert caught.value.names[-1] == full and caught.value.acts


@pytest.mark.parametrize("full", ACTING)
def test_no_admitted_name_lies_in_what_can_act(full: str) -> None:
    assert full not in SHELLS


def test_names_are_whole() -> None:
    """However a name is cut into module and attribute, it is looked up as one text, never in a package."""
    for module, attribute in [
        ("models", "common.Conv"),
        ("", "models.common.Conv"),
        ("models.common", "Conv.x"),
    ]:
        pickled = text(module) + text(attribute) + b"\x93)R."
        if f"{module}.{attribute}" in SHELLS:
            assert read(pickled, SHELLS).full_name == "models.common.Conv"
        else:
            with pytest.raises(RefusedError):
                read(pickled, SHELLS)
    assert not any("*" in full or full.endswith(".") for full in SHELLS)


def test_admitting_a_name_that_acts_makes_a_shell_of_it(tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, (f"touch {marker}",)

    pickled = pickle.dumps(Evil())
    assert read(pickled, frozenset({"posix.system", "nt.system"})).full_name.endswith(".system")
    assert not marker.exists()


def test_names_of_known_tools_make_nothing() -> None:
    """NumPy's and codecs' functions, torch's dtypes: what they would have made is not needed."""
    for full in (
        "_codecs.encode",
        "numpy.core.multiarray.scalar",
        "numpy._core.multiarray._reconstruct",
        "numpy.dtype",
    ):
        assert type(read(name(full) + text("x") + text("rot13") + b"\x86R.", SHELLS)) is Shell
    for full in ("builtins.list", "builtins.dict", "torch.float16", "torch.device", "pathlib.PosixPath"):
        assert type(read(name(full) + b")R.", SHELLS)) is Shell


def test_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = b"".join(name(full) + b")R0" for full in sorted(SHELLS)) + b"N."
    before = set(sys.modules)

    def no_import(*_: object, **__: object) -> object:
        raise AssertionError("an import was tried")

    monkeypatch.setattr(builtins, "__import__", no_import)
    assert read(pickled, SHELLS) is None
    assert set(sys.modules) == before


def test_all_unknown_classes_are_collected() -> None:
    pickled = b"".join(name(full) + b")R0" for full in ("a.B", "c.D", "a.B", "models.common.Conv")) + b"N."
    with pytest.raises(RefusedError) as caught:
        read(pickled, SHELLS)
    assert caught.value.names == ("a.B", "c.D") and not caught.value.acts
    with pytest.raises(RefusedError) as caught:  # also where the pickle then breaks off
        read(name("a.B") + b")R", SHELLS)
    assert caught.value.names == ("a.B",)
    with pytest.raises(RefusedError) as caught:  # a list without end is cut
        read(b"".join(name(f"a.B{i}") for i in range(1000)), SHELLS)
    assert len(caught.value.names) < 40


@pytest.mark.parametrize(
    ("full", "acts"),
    [
        ("my.model.Net", False),
        ("__main__.Net", False),
        ("ultralytics.nn.modules.block.C2f", False),
        ("torch.nn.modules.activation.Hardswish", False),
        ("torch.nn.modules.module.Module.__dict__", True),
        ("torch.hub.load", True),
        ("numpy.load", True),
        ("os.path.join", True),
        ("a.b\nc", True),
        ("a..b", True),
        ("", True),
    ],
)
def test_could_act(full: str, acts: bool) -> None:
    assert could_act(full) is acts


def storage(count: bytes, kind: bytes = name("torch.FloatStorage"), key: bytes = text("0")) -> bytes:
    return b"(" + text("storage") + kind + key + text("cpu") + count + b"tQ"


def tensor(offset: bytes, size: bytes, stride: bytes, count: bytes = b"K\x04") -> bytes:
    rest = b"\x89" + name("collections.OrderedDict") + b")R"
    return (
        name("torch._utils._rebuild_tensor_v2")
        + b"("
        + storage(count)
        + offset
        + size
        + stride
        + rest
        + b"tR."
    )


def test_tensors() -> None:
    assert read(tensor(b"K\x00", b"K\x02K\x02\x86", b"K\x02K\x01\x86")).shape == (2, 2)
    assert read(tensor(b"K\x03", b")", b")")).shape == ()
    assert read(tensor(b"K\x00", b"K\x09\x85", b"K\x00\x85")).shape == (9,)  # expanded: no memory


@pytest.mark.parametrize(
    "pickled",
    [
        tensor(b"K\x01", b"K\x04\x85", b"K\x01\x85"),  # one past the end
        tensor(b"K\x00", b"K\x02\x85", b"J\xff\xff\xff\xff\x85"),  # backwards
        tensor(b"J\xff\xff\xff\xff", b"K\x02\x85", b"K\x01\x85"),  # before the start
        tensor(b"K\x00", b"J\xff\xff\xff\xff\x85", b"K\x01\x85"),  # a negative size
        tensor(b"K\x00", b"K\x02K\x02\x86", b"K\x01\x85"),  # fewer strides than sizes
        tensor(b"K\x00", b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85", b"K\x01\x85"),  # 2**63 - 1 values
        tensor(
            b"K\x00", b"(" + b"\x8a\x05\x00\x00\x00\x00\x01" * 3 + b"t", b"K\x00K\x00K\x00\x87"
        ),  # 2**96 values
        tensor(b"K\x00", b"(" + b"K\x01" * 50 + b"t", b"(" + b"K\x01" * 50 + b"t"),
        tensor(b"N", b"K\x02\x85", b"K\x01\x85"),
        tensor(b"K\x00", text("ab"), b"K\x01\x85"),
        tensor(b"K\x00", b"G" + struct.pack(">d", 2.0) + b"\x85", b"K\x01\x85"),
        tensor(b"K\x00", b"K\x02\x85", b"K\x01\x85", count=b"J\xff\xff\xff\xff"),
        tensor(b"K\x00", b"K\x02\x85", b"K\x01\x85", count=b"\x8a\x08" + b"\xff" * 7 + b"\x7f"),
        tensor(b"K\x00", b"K\x02\x85", b"K\x01\x85", count=text("4")),
        storage(b"K\x04", kind=text("FloatStorage")) + b".",
        storage(b"K\x04", kind=name("torch.Size")) + b".",
        storage(b"K\x04", kind=b"N") + b".",
        storage(b"K\x04", key=b"K\x00") + b".",
        storage(b"K\x04")[:-2] + b"K\x01tQ.",  # the view of a very old file
        text("storage") + b"Q.",
        b")Q.",
        b"NQ.",
        b"(" + text("module") + b"NNNNtQ.",
        b"(" + text("other") + name("shop.Item") + b"NNNtQ.",
        storage(b"K\x04", kind=name("shop.Item")) + b".",
        name("torch._utils._rebuild_parameter") + b"(N\x88}tR.",
        name("torch._utils._rebuild_tensor_v2") + b"(NK\x00))\x89}tR.",
        name("torch.FloatStorage") + b"K\x04\x85R.",
        name("torch.Size") + text("ab") + b"\x85R.",
        name("collections.OrderedDict") + name("shop.Item") + b"\x85R.",
        name("collections.OrderedDict") + b"K\x01\x85\x85R.",
        name("builtins.set") + storage(b"K\x04") + b"\x85R.",  # a set of a tensor's values
        storage(b"K\x04") + b"}b.",  # a tensor with another state
        name("shop.Item") + b"}b.",  # a class with another state
        name("torch._utils._rebuild_tensor_v2") + b"}b.",
        b"]}b.",
        b")}b.",
        b"\x8f}b.",
        storage(b"K\x04") + b"K\x00K\x01s.",  # items for a tensor
        b"]K\x00K\x01s.",
        b"}K\x00a.",
        b"}(K\x00u.",  # a key without a value
        b"NK\x00a.",
        b"}]Ns.",  # a list as a key
        b"}))\x85\x85Ns.",  # nested tuples as a key
        b"\x8f())\x85\x85\x90.",
        text("a") + b")R.",  # a call of a text
        name("shop.Item") + b"]R.",  # arguments that are no tuple
        b"NN\x93.",  # a name that is no text
        b"h\x05.",  # nothing there
        b"j\x05\x00\x00\x00.",
        b".",
        b"",
        b"\x80",
        b"\x80\x02",
        b"t.",
        b"e.",
        b"\x87.",
        b"a.",
        b"R.",
        b"b.",
        b"cmodels.common",
        b"c" + b"a" * 5000 + b"\nb\n.",
        b"\x82\x01.",  # EXT1
        b"\x83\x01\x00.",  # EXT2
        b"\x84\x01\x00\x00\x00.",  # EXT4
        b"S'a'\n.",  # of protocol 0
        b"I1\n.",
        b"Pid\n.",  # a reference as text
        b"\x97.",  # a buffer beside the pickle
        b"\x8b\xff\xff\xff\x7f.",  # a number of 2 GB
        b"X\xff\xff\xff\xffab.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fab.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffab.",
        b"X\x01\x00\x00\x00\xff.",  # no UTF-8
        b"\x00\x00\x00\x00",
    ],
)
def test_contradictions_are_errors(pickled: bytes) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - nearly any kind; the file reader makes one of them
        read(pickled, SHELLS | ADMITTED)
    assert not isinstance(caught.value, (RefusedError, AssertionError, RecursionError))


def test_extension_codes_stay_unread(tmp_path: Path) -> None:
    """Another library may have registered a function under a number, which Python's unpickler would then call."""
    import copyreg

    copyreg.add_extension("posix", "system", 240)
    try:
        with pytest.raises(pickle.UnpicklingError, match="never writes"):
            read(b"\x80\x02\x82\xf0" + text(f"touch {tmp_path / 'marker'}") + b"\x85R.")
    finally:
        copyreg.remove_extension("posix", "system", 240)
    assert not (tmp_path / "marker").exists()


SAFE = (
    type(None),
    bool,
    int,
    float,
    str,
    bytes,
    list,
    tuple,
    dict,
    OrderedDict,
    set,
    Tensor,
    torch.dtype,
    Name,
    Shell,
)


def assert_inert(value: object) -> None:
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        assert isinstance(item, SAFE), type(item)
        if isinstance(item, Shell):
            item = item.state
        if isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple, set)):
            waiting += list(item)


pieces = st.sampled_from(
    [
        *(
            bytes([code])
            for code in b"(.012NabehjqrotuseRQ})]\x80\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94"
        ),
        *(
            name(full)
            for full in ("shop.Item", "collections.OrderedDict", "builtins.set", "torch.Size", "a.B")
        ),
        *(name(f"torch._utils.{maker}") for maker in ("_rebuild_tensor_v2", "_rebuild_parameter")),
        *(text(word) for word in ("", "storage", "_modules", "os", "system")),
        *(
            storage(b"K\x04"),
            b"K\x01",
            b"J\xff\xff\xff\xff",
            b"K\x02K\x01\x86",
            b"h\x00",
            b"q\x00",
            b"cos\nsystem\n",
        ),
    ]
)


@settings(max_examples=500)
@given(st.lists(pieces, max_size=40).map(b"".join))
def test_whatever_the_instructions_the_result_is_inert(pickled: bytes) -> None:
    try:
        value = read(pickled + b".")
    except Exception:  # any error is a fine answer
        return
    assert_inert(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_error_or_inert(data: bytes) -> None:
    try:
        value = read(b"\x80\x02" + data)
    except Exception:
        return
    assert_inert(value)


# ------------------------------------------------------------------------------- bounded stack and memory

BOMBS = r"""
import io, re, struct, torch
from yolov9kit.model import unpickler

def read(data):
    try:
        return unpickler.Unpickler(io.BytesIO(data), lambda *_: torch.zeros(1), frozenset({"a.B"})).load()
    except Exception as error:
        return type(error).__name__

deep = 300_000
print("tuples", type(read(b")" + b"\x85" * deep + b".")).__name__)
print("tuple key", read(b"}" + b")" + b"\x85" * deep + b"Ns."))
print("tuple in a set", read(b"\x8f(" + b")" + b"\x85" * deep + b"\x90."))
print("lists", type(read(b"]" * deep + b"a" * (deep - 1) + b".")).__name__)
print("dicts", type(read(b"}" + b"N}" * deep + b"s" * deep + b".")).__name__)
print("shells", type(read(b"ca\nB\nq\x00)\x81" + b"Nh\x00)\x81" * deep + b"s" * deep + b".")).__name__)
ordered = b"ccollections\nOrderedDict\nq\x00)R" + b"Nh\x00)R" * deep + b"s" * deep + b"."
print("ordered", type(read(ordered)).__name__)
print("marks", read(b"(" * deep + b"."))
def peak():  # of this process; ru_maxrss would start with that of its parent
    return int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])

before = peak()
print("memo", read(b"Nr\xff\xff\xff\xff0."))
for code in (b"X", b"B"):
    print("long", read(code + b"\xff\xff\xff\x7f" + b"a" * 100))
for code in (b"\x8d", b"\x8e", b"\x96"):
    print("longer", read(code + struct.pack("<Q", 2**40) + b"a" * 100))
print("frame", read(b"\x95" + struct.pack("<Q", 2**60) + b"N."))
print("doubled", len(read(b"]" + b"q\x00h\x00h\x00\x86q\x00" * 5000 + b".")))
unpickler.MAX_INSTRUCTIONS = 10_000
print("endless", read(b"N0" * 5_000 + b"N."))
grown = peak() - before
print("grown", "little" if grown < 100_000 else grown)
"""


def test_deep_nesting_and_false_sizes_harm_nothing(root: Path) -> None:
    """In a child: an overflow of the C stack would end the process, and not with an exception."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells the peak memory of one process, without that of its parent")
    done = subprocess.run(
        [sys.executable, "-c", BOMBS], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == [
        "tuples tuple",
        "tuple key UnpicklingError",
        "tuple in a set UnpicklingError",
        "lists list",
        "dicts dict",
        "shells Shell",
        "ordered OrderedDict",
        "marks IndexError",
        "memo IndexError",
        *["long EOFError"] * 2,
        *["longer EOFError"] * 3,
        "frame None",
        "doubled 2",
        "endless UnpicklingError",
        "grown little",
    ]


def test_numbers() -> None:
    assert read(b"G" + struct.pack(">d", -0.5) + b".") == -0.5
    assert math.isnan(read(pickle.dumps(math.nan, 2)))
    assert [read(pickle.dumps(n, 2)) for n in (0, 255, 256, 65535, 65536, -1, 2**31, -(2**31), 2**64)] == [
        *(0, 255, 256, 65535, 65536, -1, 2**31, -(2**31), 2**64)
    ]
