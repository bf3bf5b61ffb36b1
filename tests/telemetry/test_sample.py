"""The ring loses nothing that it still keeps, and doubles nothing."""

import math
import threading
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.errors import UsageError
from yolov9kit.telemetry.sample import FIELDS, GPU_FIELDS, HOST_FIELDS, Facts, Ring, Sample, telemetry_series


def sample(number: int) -> Sample:
    return Sample(time=float(number), power_w=None if number % 3 == 0 else float(number))


@given(keep=st.integers(1, 9), bursts=st.lists(st.integers(0, 25), max_size=12))
def test_since_neither_loses_nor_doubles_a_sample_that_is_kept(keep: int, bursts: list[int]) -> None:
    ring, n, count = Ring(keep), 0, 0
    for burst in bursts:
        for _ in range(burst):
            ring.append(sample(count))
            count += 1
        samples, after = ring.since(n)
        dropped = after - n - len(samples)
        assert after == count
        assert dropped == max(0, burst - keep)
        assert [int(found.time) for found in samples] == list(range(n + dropped, count))
        assert ring.latest == (sample(count - 1) if count else None)
        n = after


@given(keep=st.integers(1, 9), count=st.integers(0, 30), data=st.data())
def test_an_older_number_may_be_asked_again(keep: int, count: int, data: st.DataObject) -> None:
    ring = Ring(keep)
    for number in range(count):
        ring.append(sample(number))
    n = data.draw(st.integers(0, count))
    kept = [int(found.time) for found in ring.since(n)[0]]
    assert kept == [number for number in range(count) if number >= max(n, count - keep)]


@pytest.mark.parametrize("n", [-1, 4, 1000])
def test_a_number_that_was_never_given_is_refused(n: int) -> None:
    ring = Ring(2)
    for number in range(3):
        ring.append(sample(number))
    with pytest.raises(UsageError, match=rf"since\({n}\).*at 3"):
        ring.since(n)


def test_two_threads_share_a_ring() -> None:
    ring, total = Ring(50), 20_000
    writer = threading.Thread(target=lambda: [ring.append(sample(number)) for number in range(total)])
    writer.start()
    n, seen, dropped = 0, [], 0
    while n < total:
        samples, after = ring.since(n)
        dropped += after - n - len(samples)
        seen += [int(found.time) for found in samples]
        n = after
    writer.join()
    assert len(seen) + dropped == total
    assert seen == sorted(set(seen))


def test_a_series_has_nan_where_nothing_is_known() -> None:
    samples = [sample(number) for number in range(5)]
    times, values = telemetry_series(samples, "power_w")
    assert times.tolist() == [0, 1, 2, 3, 4]
    assert [None if math.isnan(value) else value for value in values] == [None, 1, 2, None, 4]
    assert [array.shape for array in telemetry_series([], "power_w")] == [(0,), (0,)]


@pytest.mark.parametrize("name", ["time", "watts", ""])
def test_a_series_of_no_field_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="power_w"):
        telemetry_series([], name)


def test_samples_are_frozen_and_their_fields_of_two_kinds() -> None:
    with pytest.raises(FrozenInstanceError):
        sample(1).time = 2.0  # type: ignore[misc]
    assert sorted(GPU_FIELDS + HOST_FIELDS) == sorted(FIELDS)
    assert "gpu_percent" in GPU_FIELDS and "ram_mib" in HOST_FIELDS


def test_facts_say_each_reason_once() -> None:
    facts = Facts("cuda:1", "H200", "GPU-a", missing={"power_w": "no sensor", "sm_mhz": "no sensor"})
    assert str(facts).splitlines() == ["cuda:1: H200, GPU-a", "not available: power_w, sm_mhz (no sensor)"]
    assert str(Facts("cpu")) == "cpu"
