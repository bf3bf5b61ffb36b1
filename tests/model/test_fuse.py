"""Fusing makes a new, equal model."""

import torch
from torch import nn

from yolov9kit.model.blocks import RepConv
from yolov9kit.model.fuse import FusedConv, fuse, is_fused
from yolov9kit.model.yolov9 import yolov9


def test_nothing_is_left_to_fuse_and_the_model_is_untouched() -> None:
    model = yolov9("t", 2, "deployed")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    fused = fuse(model)
    assert is_fused(fused) and not is_fused(model)
    assert not any(isinstance(m, (nn.BatchNorm2d, RepConv)) for m in fused.modules())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert model.training and not fused.training
    assert not any(p.requires_grad for p in fused.parameters())


def test_repconv_becomes_one_convolution() -> None:
    block = RepConv(6, 6).eval()
    for module in block.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.1, 2.0)
            nn.init.normal_(module.bias)
    holder = yolov9("t", 1, "deployed")
    holder.backbone.elan2.cv2 = block  # any place will do
    fused = fuse(holder).backbone.elan2.cv2
    assert isinstance(fused, FusedConv) and fused.conv.kernel_size == (3, 3)
    x = torch.randn(2, 6, 9, 9)
    torch.testing.assert_close(fused(x), block(x), atol=1e-5, rtol=1e-5)


def test_fusing_keeps_the_device_and_precision() -> None:
    fused = fuse(yolov9("t", 1, "deployed").to(torch.bfloat16))
    assert {p.dtype for p in fused.parameters()} == {torch.bfloat16}


def test_fusing_twice_changes_nothing() -> None:
    once = fuse(yolov9("t", 1, "deployed"))
    images = torch.rand(1, 3, 64, 64)
    assert all(torch.equal(a, b) for a, b in zip(once(images).main, fuse(once)(images).main, strict=True))
