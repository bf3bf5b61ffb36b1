"""torch's cuda:N is found among the driver's GPUs, whatever CUDA_VISIBLE_DEVICES says; or refused in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.errors import DeviceError, UsageError
from yolov9kit.telemetry.visible import Card, Instance, by_environment, by_uuid, gpu_number

ONE = [Card("h0", "GPU-aaaa-0000", "H200")]
TWO = [*ONE, Card("h1", "GPU-bbbb-1111", "H200")]
EIGHT = [Card(f"h{i}", f"GPU-{i}{i}{i}{i}-00", "H200") for i in range(8)]
MIXED = [Card("h0", "GPU-aaaa-0000", "T4"), Card("h1", "GPU-bbbb-1111", "H200")]
HALVES = tuple(Instance(f"p{i}", f"MIG-c{i}", "H200 MIG 3g", 1 + i, 0) for i in range(2))
SPLIT = Card("h0", "GPU-aaaa-0000", "H200", mig=True, instances=HALVES)
EMPTY_SPLIT = Card("h1", "GPU-bbbb-1111", "H200", mig=True)


def handle(cards: list[Card], number: int, visible: str | None, order: str | None = None) -> str:
    """The driver's handle of what a process with these settings calls cuda:number."""
    settings = {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": order}
    found = by_environment(cards, number, {k: v for k, v in settings.items() if v is not None})
    return found.card.handle if found.instance is None else found.instance.handle


@pytest.mark.parametrize(
    ("cards", "number", "visible", "expected"),
    [
        (ONE, 0, None, "h0"),
        (TWO, 1, None, "h1"),
        (EIGHT, 7, None, "h7"),
        (TWO, 0, "1", "h1"),
        (TWO, 0, "1,0", "h1"),
        (TWO, 1, "1,0", "h0"),
        (TWO, 1, " 1 , 0 ", "h0"),
        (EIGHT, 2, "6,7,0", "h0"),
        (EIGHT, 0, "3gpu", "h3"),
        (TWO, 0, "1,-1,0", "h1"),
        (TWO, 0, "0,7,1", "h0"),
        (TWO, 0, "GPU-bbbb-1111", "h1"),
        (TWO, 0, "GPU-b", "h1"),
        (TWO, 0, "gpu-BBBB", "h1"),
        (TWO, 1, "GPU-b,GPU-a", "h0"),
        (TWO, 0, "GPU-b,0", "h1"),
    ],
)
def test_u13_the_gpu_that_cuda_would_take(
    cards: list[Card], number: int, visible: str, expected: str
) -> None:
    assert handle(cards, number, visible) == expected


@pytest.mark.parametrize(
    ("cards", "number", "visible", "seen"),
    [
        ([], 0, None, 0),
        (ONE, 1, None, 1),
        (TWO, 0, "", 0),
        (TWO, 0, " ", 0),
        (TWO, 0, "-1", 0),
        (TWO, 0, "none", 0),
        (TWO, 0, "7", 0),
        (TWO, 0, "0,0", 0),
        (TWO, 1, "1", 1),
        (TWO, 1, "0,-1,1", 1),
        (TWO, 1, "0,GPU-b", 1),
        (TWO, 1, "0,7,1", 1),
        (TWO, 0, "GPU-", 0),  # several begin so
        (TWO, 0, "GPU-f", 0),
        (TWO, 0, "GPU-a,GPU-aaaa", 0),
        (TWO, 0, "MIG-c0", 0),
    ],
)
def test_u13_what_is_hidden_is_refused_in_words(
    cards: list[Card], number: int, visible: str | None, seen: int
) -> None:
    with pytest.raises(DeviceError) as refused:
        handle(cards, number, visible)
    text = str(refused.value)
    assert f"cuda:{number} is not there: of {len(cards)} GPUs torch sees {seen}" in text
    assert visible is None or f"CUDA_VISIBLE_DEVICES={visible!r}" in text


@given(order=st.permutations(range(8)), shown=st.integers(0, 8), number=st.integers(0, 7))
def test_numbers_and_uuids_agree(order: list[int], shown: int, number: int) -> None:
    numbers = ",".join(str(i) for i in order[:shown])
    uuids = ",".join(EIGHT[i].uuid for i in order[:shown])
    if number < shown:
        assert handle(EIGHT, number, numbers) == handle(EIGHT, number, uuids) == f"h{order[number]}"
    else:
        for visible in (numbers, uuids):
            with pytest.raises(DeviceError, match="is not there"):
                handle(EIGHT, number, visible)


def test_numbers_of_different_models_are_not_guessed() -> None:
    for visible in (None, "0", "1"):
        with pytest.raises(DeviceError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
            handle(MIXED, 0, visible)
        with pytest.raises(DeviceError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
            handle(MIXED, 0, visible, "FASTEST_FIRST")
    assert handle(MIXED, 0, None, "PCI_BUS_ID") == "h0"
    assert handle(MIXED, 0, "1", "PCI_BUS_ID") == "h1"
    assert handle(MIXED, 0, "GPU-a") == "h0", "a UUID needs no order"


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, "p0"),
        ("0", "p0"),
        ("GPU-aaaa-0000", "p0"),
        ("MIG-c1", "p1"),
        ("MIG-c1,MIG-c0", "p1"),
        ("MIG-GPU-aaaa-0000/1/0", "p0"),
        ("MIG-GPU-aaaa-0000/2/0", "p1"),
        ("mig-gpu-AAAA-0000/2/0", "p1"),
    ],
)
def test_a_split_gpu_shows_one_instance(visible: str | None, expected: str) -> None:
    assert handle([SPLIT], 0, visible) == expected
    with pytest.raises(DeviceError, match="torch sees 1"):
        handle([SPLIT], 1, visible)


@pytest.mark.parametrize(
    "visible", ["MIG-", "MIG-x", "MIG-GPU-aaaa-0000/9/0", "MIG-GPU-aaaa-0000/1", "MIG-GPU-b/1/0"]
)
def test_an_instance_that_is_not_there(visible: str) -> None:
    with pytest.raises(DeviceError, match="torch sees 0"):
        handle([SPLIT], 0, visible)


def test_split_without_instances_is_no_device() -> None:
    assert handle([ONE[0], EMPTY_SPLIT], 0, None) == "h0"
    with pytest.raises(DeviceError, match="torch sees 0"):
        handle([ONE[0], EMPTY_SPLIT], 0, "1")


def test_a_given_uuid() -> None:
    assert by_uuid(TWO, "GPU-bbbb-1111").card.handle == "h1"
    assert by_uuid(TWO, "bbbb-1111").card.handle == "h1", "as torch writes it"
    assert by_uuid([SPLIT], "MIG-c1").instance == HALVES[1]
    assert by_uuid([SPLIT], "c1").instance == HALVES[1]
    assert by_uuid([SPLIT], "GPU-aaaa-0000").instance is None, "the whole card was asked for"


@pytest.mark.parametrize(
    ("uuid", "why"), [("GPU-x", "no GPU has it"), ("GPU-", "several"), ("MIG-c1", "no GPU")]
)
def test_a_given_uuid_that_does_not_fit(uuid: str, why: str) -> None:
    with pytest.raises(DeviceError, match=why) as refused:
        by_uuid(TWO, uuid)
    assert "GPU-aaaa-0000, GPU-bbbb-1111" in str(refused.value)


def test_numbers_tell_nothing_where_a_gpu_does_not_answer() -> None:
    cards = [Card(None, "", "", problem="GPU is lost"), TWO[1]]
    for number in (0, 1):
        with pytest.raises(DeviceError, match=r"GPU 0 of the driver.*GPU is lost"):
            handle(cards, number, None, "PCI_BUS_ID")
    assert handle(cards, 0, "GPU-bbbb-1111") == "h1"


@pytest.mark.parametrize(
    ("device", "number"),
    [("cpu", None), ("mps", None), ("cuda", 0), ("GPU", 0), ("cuda:3", 3), ("3", 3), (" CUDA:1 ", 1)],
)
def test_names_of_devices(device: str, number: int | None) -> None:
    assert gpu_number(device) == number


@pytest.mark.parametrize(
    "device", ["", "cuda:", "cuda:-1", "cuda:x", "0,1", "auto", "tpu", "gpu:1:2", "cuda:99999"]
)
def test_no_name_of_a_device(device: str) -> None:
    with pytest.raises(UsageError, match="name one as torch does"):
        gpu_number(device)
