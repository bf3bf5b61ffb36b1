"""A pickle reader that cannot act: it knows the instructions of pickle, but no module, class or function.

Python's own unpickler imports and calls what a file names. Here a name stays a name (``Name``). Where the file calls
one, this reader makes a container, a tensor or an empty ``Shell``, whatever the name means elsewhere; instructions
that ``torch.save`` never writes are errors. Memory grows with the size of the file, not with what the file claims.
"""

import io
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ReadStorage = Callable[[str, torch.dtype, int], Tensor]
"""Key, dtype and count of a storage -> its values as a flat tensor."""

MAX_INSTRUCTIONS = 5_000_000
"""A training file of size e with its optimizer has under a million; each may cost a few hundred bytes of memory."""

_STORAGES = {
    f"{module}.{name}Storage": dtype
    for module in ("torch", "torch.storage")
    for name, dtype in {
        "Double": torch.float64,
        "Float": torch.float32,
        "Half": torch.float16,
        "BFloat16": torch.bfloat16,
        "Long": torch.int64,
        "Int": torch.int32,
        "Short": torch.int16,
        "Char": torch.int8,
        "Byte": torch.uint8,
        "Bool": torch.bool,
    }.items()
}


class RefusedError(Exception):
    """The file asks for names that are not admitted. ``acts``: the last of them could run code."""

    def __init__(self, names: tuple[str, ...], acts: bool) -> None:
        super().__init__(", ".join(names))
        self.names = names
        self.acts = acts


@dataclass(frozen=True, slots=True)
class Name:
    """A class or function that the file names. Only its name is known here."""

    full: str


class Shell:
    """What stands for an object of the file's classes: its state (or its items, if it is a mapping), and no deeds."""

    __slots__ = ("full_name", "state")

    def __init__(self, full_name: str) -> None:
        self.full_name = full_name
        self.state: dict[Any, Any] = {}


class Unpickler:
    """Reads one pickle from ``file``. ``admitted`` are the full names that become shells."""

    def __init__(
        self, file: io.BytesIO | io.BufferedReader, read_storage: ReadStorage, admitted: Set[str]
    ) -> None:
        self._file = file
        self._read_storage = read_storage
        self._admitted = admitted
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []  # the stacks below each open mark
        self._memo: dict[int, Any] = {}
        self._unknown: dict[str, None] = {}  # in the order of the file

    def load(self) -> Any:
        """The object.

        Raises:
            RefusedError: the file asks for names that are not admitted.
            Exception: of nearly any kind, if the pickle is damaged.
        """
        try:
            result = self._run()
        except RefusedError:
            raise
        except Exception:
            if not self._unknown:
                raise
        if self._unknown:
            raise RefusedError(tuple(self._unknown), acts=False)
        return result

    def _run(self) -> Any:
        for _ in range(MAX_INSTRUCTIONS):
            code = self._file.read(1)
            step = _STEPS.get(code)
            if step is not None:
                step(self)
            elif code == b".":  # STOP
                return self._stack.pop()
            elif code:
                raise pickle.UnpicklingError(f"instruction {code!r}, which torch.save never writes")
            else:
                raise EOFError("it ends too early")
        raise pickle.UnpicklingError(f"more than {MAX_INSTRUCTIONS:,} instructions")

    # ------------------------------------------------------------------------------------------ reading

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError("it ends too early")
        return data

    def _number(self, layout: struct.Struct) -> Any:
        return layout.unpack(self._read(layout.size))[0]

    def _line(self) -> str:
        line = self._file.readline(1000)
        if not line.endswith(b"\n"):
            raise pickle.UnpicklingError("a name without an end")
        return line[:-1].decode()

    def _long(self) -> None:
        self._stack.append(int.from_bytes(self._read(self._number(_UINT8)), "little", signed=True))

    def _bytes(self, count: struct.Struct) -> None:
        self._stack.append(self._read(self._number(count)))

    def _text(self, count: struct.Struct) -> None:
        self._stack.append(self._read(self._number(count)).decode("utf-8", "surrogatepass"))

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _get(self, index: int) -> None:
        self._stack.append(self._memo[index])

    def _since_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._outer.pop()
        return items

    def _mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _drop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._since_mark()

    def _marked_tuple(self) -> None:
        items = tuple(self._since_mark())
        self._stack.append(items)

    def _tuple(self, count: int) -> None:
        items = tuple(self._stack[-count:])
        if len(items) != count:
            raise pickle.UnpicklingError("a tuple with too few items")
        self._stack[-count:] = [items]

    # --------------------------------------------------------------------------------------- containers

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, set):
            target.update(map(_key, items))
        elif not isinstance(target, Shell):  # a shell of a list's class keeps no items
            raise pickle.UnpicklingError(f"items for a {type(target).__name__}")

    def _update(self, items: list[Any]) -> None:
        target = self._stack[-1]
        mapping = target.state if isinstance(target, Shell) else target
        if not isinstance(mapping, dict) or len(items) % 2:
            raise pickle.UnpicklingError(f"items for a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            mapping[_key(key)] = value

    def _pop(self, count: int) -> list[Any]:
        return [self._stack.pop() for _ in range(count)][::-1]

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if isinstance(target, Shell):
            for part in state if isinstance(state, tuple) else (state,):  # (dict, slots) or one of them
                if isinstance(part, dict):
                    target.state.update(part)
        elif not isinstance(target, OrderedDict):  # a state dict's versions: nothing that is needed
            raise pickle.UnpicklingError(f"the file tries to change a {type(target).__name__}")

    # -------------------------------------------------------------------------------------------- names

    def _named(self, module: Any, name: Any) -> Name:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise pickle.UnpicklingError("a name that is no text")
        full = f"{module}.{name}"
        if full not in _MAKERS and full not in _STORAGES and full not in self._admitted:
            self._unknown[full] = None
            if could_act(full) or len(self._unknown) > 30:
                raise RefusedError(tuple(self._unknown), could_act(full))
        return Name(full)

    def _global(self) -> None:
        self._stack.append(self._named(self._line(), self._line()))

    def _stack_global(self) -> None:
        self._stack.append(self._named(*self._pop(2)))

    def _instance(self) -> None:  # INST
        name = self._named(self._line(), self._line())
        arguments = tuple(self._since_mark())
        self._stack.append(_make(name, arguments))

    def _object(self) -> None:  # OBJ
        name, *arguments = self._since_mark()
        self._stack.append(_make(name, tuple(arguments)))

    def _call(self, arguments: int = 1) -> None:
        name, given, *_keywords = self._pop(1 + arguments)  # keywords (NEWOBJ_EX): nothing needs them
        self._stack.append(_make(name, given))

    def _reference(self) -> None:
        """A storage, or, in files of torch before 1.6, a class with its source text, which stays unread."""
        pid = self._stack.pop()
        kind, name, *rest = pid if isinstance(pid, tuple) and len(pid) >= 2 else (None, None)
        if not isinstance(kind, str) or not isinstance(name, Name):
            raise pickle.UnpicklingError("a reference to nothing that is known")
        if kind == "module":
            self._stack.append(name)
            return
        key, _location, count, *view = rest  # where it lived does not matter: all is read to the CPU
        fits = isinstance(key, str) and isinstance(count, int) and count >= 0
        if kind != "storage" or not fits or any(view):
            raise pickle.UnpicklingError("a reference to nothing that is known")
        self._stack.append(self._read_storage(key, _STORAGES[name.full], count))


def could_act(full_name: str) -> bool:
    """Whether a name is surely no class of a model: of Python itself, a tool of torch or NumPy, or an inner part."""
    parts = full_name.split(".")
    inside = any(part.startswith("__") and part != "__main__" for part in parts)
    tools = parts[0] in ("torch", "numpy", "copy_reg", "cPickle") and not full_name.startswith("torch.nn.")
    no_name = len(full_name) > 200 or not all(map(str.isidentifier, parts))
    return inside or tools or no_name or parts[0] in sys.stdlib_module_names


def _key(key: Any) -> Any:
    """Hashing descends into nested tuples without a limit and can overflow the stack: only flat ones are taken."""
    if isinstance(key, tuple) and any(isinstance(part, tuple) for part in key):
        raise pickle.UnpicklingError("a nested tuple as a key")
    return key


def _make(name: Any, arguments: Any) -> Any:
    if not isinstance(name, Name) or not isinstance(arguments, tuple) or name.full in _STORAGES:
        raise pickle.UnpicklingError("a call of something that cannot be called")
    maker = _MAKERS.get(name.full)
    return Shell(name.full) if maker is None else maker(*arguments)


def _ordered_dict(pairs: Any = ()) -> OrderedDict[Any, Any]:
    if not isinstance(pairs, (list, tuple)):
        raise pickle.UnpicklingError("an OrderedDict of something that is no list")
    return OrderedDict((_key(key), value) for key, value in pairs)


def _set(items: Any = ()) -> set[Any]:
    if not isinstance(items, (list, tuple)):
        raise pickle.UnpicklingError("a set of something that is no list")
    return set(map(_key, items))


def _size(sides: Any = ()) -> tuple[int, ...]:
    if not (isinstance(sides, (list, tuple)) and len(sides) <= 16 and all(isinstance(n, int) for n in sides)):
        raise pickle.UnpicklingError("a shape that is none")
    return tuple(sides)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_rest: Any) -> Tensor:
    if not isinstance(storage, Tensor) or not isinstance(offset, int):
        raise pickle.UnpicklingError("a tensor without a storage")
    return torch.as_strided(storage, _size(size), _size(stride), offset)  # torch checks the bounds


def _parameter(data: Any, *_rest: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise pickle.UnpicklingError("a parameter without a tensor")
    return data


_MAKERS: Mapping[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered_dict,
    "collections.defaultdict": lambda *_factory: {},
    "builtins.set": _set,
    "__builtin__.set": _set,
    "torch.Size": _size,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
}

_UINT8, _UINT16, _UINT32, _UINT64 = map(struct.Struct, ("<B", "<H", "<I", "<Q"))
_INT32, _FLOAT64 = struct.Struct("<i"), struct.Struct(">d")

_STEPS: Mapping[bytes, Callable[[Unpickler], object]] = {
    b"h": lambda u: u._get(u._number(_UINT8)),  # BINGET
    b"j": lambda u: u._get(u._number(_UINT32)),
    b"q": lambda u: u._put(u._number(_UINT8)),  # BINPUT
    b"r": lambda u: u._put(u._number(_UINT32)),
    b"\x94": lambda u: u._put(len(u._memo)),  # MEMOIZE
    b"R": Unpickler._call,  # REDUCE
    b"\x81": Unpickler._call,  # NEWOBJ
    b"\x92": lambda u: u._call(arguments=2),  # NEWOBJ_EX
    b"b": Unpickler._build,
    b"Q": Unpickler._reference,
    b"c": Unpickler._global,
    b"\x93": Unpickler._stack_global,
    b"i": Unpickler._instance,
    b"o": Unpickler._object,
    b"N": lambda u: u._stack.append(None),
    b"\x88": lambda u: u._stack.append(True),
    b"\x89": lambda u: u._stack.append(False),
    b"J": lambda u: u._stack.append(u._number(_INT32)),
    b"K": lambda u: u._stack.append(u._number(_UINT8)),
    b"M": lambda u: u._stack.append(u._number(_UINT16)),
    b"G": lambda u: u._stack.append(u._number(_FLOAT64)),
    b"\x8a": Unpickler._long,
    b"X": lambda u: u._text(_UINT32),
    b"\x8c": lambda u: u._text(_UINT8),
    b"\x8d": lambda u: u._text(_UINT64),
    b"B": lambda u: u._bytes(_UINT32),
    b"C": lambda u: u._bytes(_UINT8),
    b"\x8e": lambda u: u._bytes(_UINT64),
    b"\x96": lambda u: u._bytes(_UINT64),  # BYTEARRAY8
    b"]": lambda u: u._stack.append([]),
    b"}": lambda u: u._stack.append({}),
    b")": lambda u: u._stack.append(()),
    b"\x8f": lambda u: u._stack.append(set()),
    b"(": Unpickler._mark,
    b"0": Unpickler._drop,  # POP
    b"1": Unpickler._since_mark,  # POP_MARK
    b"t": Unpickler._marked_tuple,
    b"\x91": Unpickler._marked_tuple,  # FROZENSET, which nothing needs as a set
    b"\x85": lambda u: u._tuple(1),
    b"\x86": lambda u: u._tuple(2),
    b"\x87": lambda u: u._tuple(3),
    b"a": lambda u: u._extend(u._pop(1)),
    b"e": lambda u: u._extend(u._since_mark()),
    b"\x90": lambda u: u._extend(u._since_mark()),  # ADDITEMS
    b"s": lambda u: u._update(u._pop(2)),
    b"u": lambda u: u._update(u._since_mark()),
    b"\x80": lambda u: u._read(1),  # PROTO
    b"\x95": lambda u: u._read(8),  # FRAME
}
"""EXT1, EXT2 and EXT4 are missing on purpose: they take objects that another library registered, past every list."""
