"""The network: sizes, forms, shapes, and that both forms are one model."""

from typing import get_args

import pytest
import torch
from torch import nn

from yolov9kit.errors import UsageError
from yolov9kit.model.decode import decode
from yolov9kit.model.fuse import fuse
from yolov9kit.model.variants import VARIANTS, Form, Size
from yolov9kit.model.yolov9 import YOLOv9, deployed, main_branch, parameter_count, yolov9

SIZES = get_args(Size)

# millions of parameters for 80 classes: deployed and training form before fusing, deployed after fusing
PARAMETERS = {
    "t": (2.443, 3.718, 2.408),
    "s": (7.226, 9.804, 7.106),
    "m": (20.124, 32.878, 19.979),
    "c": (25.499, 51.182, 25.289),
    "e": (58.114, 69.530, 57.346),
}


def on_meta(size: str, form: Form, num_classes: int = 80) -> YOLOv9:
    """Shapes without memory."""
    with torch.device("meta"):
        return yolov9(size, num_classes, form)  # type: ignore[arg-type]


def with_statistics(model: YOLOv9) -> YOLOv9:
    """BatchNorm statistics that are not trivial, as after training."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.uniform_(module.weight, 0.75, 1.25)
    return model.eval()


@pytest.mark.parametrize("size", SIZES)
def test_parameter_counts(size: str) -> None:
    lean, whole, _ = PARAMETERS[size]
    assert parameter_count(on_meta(size, "deployed")) / 1e6 == pytest.approx(lean, abs=5e-4)
    assert parameter_count(on_meta(size, "training")) / 1e6 == pytest.approx(whole, abs=5e-4)


@pytest.mark.parametrize("size", SIZES)
def test_training_form_less_the_auxiliary_branch_is_the_deployed_form(size: str) -> None:
    whole, lean = on_meta(size, "training").state_dict(), on_meta(size, "deployed").state_dict()
    main = {k: v.shape for k, v in whole.items() if not k.startswith(("aux.", "aux_head."))}
    assert main == {k: v.shape for k, v in lean.items()}


@pytest.mark.parametrize("size", ["t", "c"])
@torch.inference_mode()
def test_w01_training_form_predicts_one_result(size: Size) -> None:
    model = with_statistics(yolov9(size, 3))
    images = torch.rand(1, 3, 640, 640)
    outputs, lean = model(images), deployed(model)(images)
    assert [tuple(m.shape) for m in outputs.main] == [(1, 67, s, s) for s in (80, 40, 20)]
    boxes, scores = decode(outputs.main)
    assert boxes.shape == (1, 8400, 4) and scores.shape == (1, 8400, 3)
    assert lean.aux is None
    assert all(torch.equal(a, b) for a, b in zip(lean.main, outputs.main, strict=True))


@pytest.mark.parametrize("size", SIZES)
@torch.inference_mode()
def test_w02_deployed_and_fused_forms_are_equal(size: str) -> None:
    model = with_statistics(yolov9(size, 3))
    images = torch.rand(5, 3, 64, 96)
    lean = deployed(model)
    assert lean.num_classes == 3 and lean.form == "deployed" and model.form == "training"
    for other in (lean, fuse(lean)):
        for (boxes, scores), (b, s) in [(decode(model(images).main), decode(other(images).main))]:
            assert (boxes - b).abs().max() <= 1e-3
            assert (scores - s).abs().max() <= 1e-5


@pytest.mark.parametrize("size", SIZES)
def test_w03_published_parameter_counts(size: str) -> None:
    """The paper's counts are rounded, of the fused deployed form, and for t of a narrower class tower.

    Size t has 128 channels in its class towers by the official rule (2C, at most 128); the published 2.0 M is met
    with 80. Files of both kinds are read: the width comes from their tensors.
    """
    published = {"t": 2.0, "s": 7.1, "m": 20.0, "c": 25.3, "e": 57.3}[size]
    model = YOLOv9("t", 80, "deployed", class_width=80) if size == "t" else yolov9(size, 80, "deployed")  # type: ignore[arg-type]
    assert parameter_count(fuse(model)) / 1e6 == pytest.approx(published, rel=0.03)
    assert parameter_count(fuse(yolov9(size, 80, "deployed"))) / 1e6 == pytest.approx(
        PARAMETERS[size][2], abs=5e-4
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["t", "c", "e"])  # one of each kind of branch
@torch.inference_mode()
def test_one_equals_many(size: Size) -> None:
    model = with_statistics(yolov9(size, 2))
    images = torch.rand(2, 3, 64, 64)
    together = model(images)
    assert together.aux is not None
    for i in range(2):
        alone = model(images[i : i + 1])
        assert alone.aux is not None
        for a, b in zip(alone.main + alone.aux, together.main + together.aux, strict=True):
            torch.testing.assert_close(a[0], b[i], atol=2e-6, rtol=1e-5)


def test_deployed_shares_nothing_with_the_model_it_came_from() -> None:
    model = yolov9("t", 2)
    lean = deployed(model)
    with torch.no_grad():
        for parameter in lean.parameters():
            parameter.zero_()
    assert model.backbone.conv1.conv.weight.abs().sum() > 0
    assert model.aux is not None and lean.aux is None and lean.aux_head is None


def test_training_mode_changes_batchnorm_only() -> None:
    model = yolov9("t", 2)
    outputs = model.train()(torch.rand(2, 3, 64, 64))
    assert outputs.aux is not None and [m.shape for m in outputs.main] == [m.shape for m in outputs.aux]
    sum(m.sum() for m in outputs.main + outputs.aux).backward()
    untouched = [k for k, p in model.named_parameters() if p.grad is None]
    assert untouched == []


@pytest.mark.parametrize("form", get_args(Form))
def test_exports_whole(form: Form) -> None:
    """One type in every mode, no decoding inside, nothing that depends on values: torch can trace all of it."""
    model = yolov9("t", 2, form).eval()
    images = torch.rand(1, 3, 64, 64)
    exported = torch.export.export(model, (images,)).module()
    for a, b in zip(exported(images).main, model(images).main, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.compiled
@pytest.mark.parametrize("size", ["t", "e"])
def test_compiles_whole(size: Size) -> None:
    model = yolov9(size, 2, "training" if size == "t" else "deployed").eval()
    images = torch.rand(1, 3, 64, 64)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.inference_mode():
        for a, b in zip(compiled(images).main, model(images).main, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"size": "l"}, "size 'l': YOLOv9 has the sizes t, s, m, c, e"),
        ({"size": "t", "form": "gelan"}, "form 'gelan'"),
        ({"size": "t", "num_classes": 0}, "num_classes 0"),
    ],
)
def test_wrong_requests_are_named(arguments: dict, says: str) -> None:
    with pytest.raises(UsageError, match=says.split(":")[0]):
        yolov9(**arguments)


def test_channels_are_used_as_written() -> None:
    """Size m goes down to 184 channels: a formula would give 180."""
    assert VARIANTS["m"].bottom_up_down == (184, 240)
    assert on_meta("m", "deployed").bottom_up.down4.cv1.conv.out_channels == 184  # type: ignore[union-attr]


def test_the_main_branch_is_a_view_of_the_same_weights() -> None:
    model = yolov9("t", 3).eval()
    view = main_branch(model)
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        assert view(images).aux is None
        assert all(torch.equal(a, b) for a, b in zip(view(images).main, model(images).main, strict=True))
        assert model(images).aux is not None
        model.backbone.conv1.conv.weight.mul_(2)
        assert all(torch.equal(a, b) for a, b in zip(view(images).main, model(images).main, strict=True))
    assert view.form == "deployed"
    assert model.form == "training"
