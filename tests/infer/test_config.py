"""The settings: declared once, checked when they are made, refused in one line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from yolov9kit.errors import UsageError
from yolov9kit.infer.config import DetectConfig

LIMITS: dict[str, tuple[list[Any], list[Any]]] = {
    "image_size": ([640, 32, (384, 640), [64, 96]], ["x", 640.5, None, (640,), (640, 640, 640)]),
    "min_score": ([0, 0.25, 1], [-0.01, 1.01, float("nan"), float("inf"), "x", None]),
    "max_iou": ([0, 0.7, 1], [-0.01, 1.01, float("nan")]),
    "max_detections": ([1, 300, 100_000], [0, -1, 1.5]),
    "classes": ([None, (0,), [2, 0]], [(), [], 3, ("x",), (0.5,)]),
    "agnostic": ([True, False], ["maybe", 2]),
    "batch_size": ([1, 8, 4096], [0, 4097, 2.5]),
    "keep_candidates": ([True, False], [7]),
    "candidate_score": ([0, 0.01, 1], [-1, 2, float("nan")]),
    "max_candidates": ([1, 3000], [0]),
}


def test_every_setting_is_tried_here_and_describes_itself() -> None:
    assert set(LIMITS) == set(DetectConfig.model_fields)
    assert all(field.description for field in DetectConfig.model_fields.values())


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (good, _) in LIMITS.items() for value in good]
)
def test_what_is_in_range_is_taken(name: str, value: Any) -> None:
    made = DetectConfig(**{name: value})
    assert made == DetectConfig().changed(**{name: value})
    expected = tuple(value) if isinstance(value, list) else value
    assert made.model_dump()[name] == expected


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (_, bad) in LIMITS.items() for value in bad]
)
def test_what_is_out_of_range_is_refused_by_name_in_one_line(name: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=name):
        DetectConfig(**{name: value})
    with pytest.raises(UsageError, match=f"^{name} = ") as caught:
        DetectConfig().changed(**{name: value})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("size", [641, 0, (640, 100), -32])
def test_a_size_that_does_not_fit_the_strides_is_refused_when_it_is_named(size: Any) -> None:
    for make in (DetectConfig, DetectConfig().changed):
        with pytest.raises(UsageError, match="must be a multiple of 32, the nearest is"):
            make(image_size=size)


@pytest.mark.parametrize("name", ["min_scores", "conf", "imgsz", ""])
def test_an_unknown_setting_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        DetectConfig(**{name: 1})
    with pytest.raises(
        UsageError, match=f"^{name}: no such setting. There are image_size, min_score, max_iou"
    ) as caught:
        DetectConfig().changed(**{name: 1})
    assert all(known in str(caught.value) for known in DetectConfig.model_fields)


def test_a_config_is_frozen() -> None:
    config = DetectConfig()
    with pytest.raises(ValidationError, match="frozen"):
        config.min_score = 0.5  # type: ignore[misc]
    changed = config.changed(min_score=0.5)
    assert (config.min_score, changed.min_score) == (0.25, 0.5) and changed.changed() == changed


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "min_score": st.floats(0, 1),
            "max_iou": st.floats(0, 1),
            "classes": st.none() | st.lists(st.integers(0, 90), min_size=1).map(tuple),
            "image_size": st.integers(1, 40).map(lambda n: 32 * n),
            "batch_size": st.integers(1, 4096),
            "agnostic": st.booleans(),
        },
    )
)
def test_json_there_and_back(chosen: dict[str, Any]) -> None:
    config = DetectConfig(**chosen)
    assert DetectConfig.model_validate_json(config.model_dump_json()) == config
    assert config.model_dump() == DetectConfig().model_dump() | chosen


def test_the_defaults_need_neither_torch_nor_numpy(root: Path) -> None:
    program = (
        "import sys\nfrom yolov9kit.infer.config import DetectConfig\nDetectConfig(min_score=0.5)\n"
        "print(sorted({'torch', 'numpy', 'cv2', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=True
    )
    assert done.stdout.strip() == "[]"
