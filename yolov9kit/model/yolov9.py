"""YOLOv9: ``forward`` is the paper's figure (Wang et al. 2024, arXiv 2402.13616, figure 3)."""

import copy
from typing import cast, get_args

from torch import Tensor, nn

from yolov9kit.errors import UsageError
from yolov9kit.model.head import OFFICIAL_GROUPS, Head
from yolov9kit.model.parts import Backbone, BottomUp, ReversibleBranch, TopDown
from yolov9kit.model.variants import VARIANTS, Form, Size
from yolov9kit.types import Outputs


class YOLOv9(nn.Module):
    """The network. Build it with ``yolov9(size)``.

    Having the auxiliary branch (PGI, section 4.1) is a fact of the object: the training form has ``aux`` and
    ``aux_head``, the deployed form has None there. ``training`` mode changes BatchNorm and nothing else.
    """

    def __init__(
        self,
        size: Size,
        num_classes: int,
        form: Form,
        box_groups: int = OFFICIAL_GROUPS,
        class_width: int | None = None,
        aux_class_width: int | None = None,
    ) -> None:
        super().__init__()
        v = VARIANTS[size]
        self.size: Size = size
        self.num_classes = num_classes
        self.pgi = v.pgi
        self.backbone = Backbone(v)
        self.reversible = ReversibleBranch(v, levels=(1, 2, 3, 4, 5)) if v.reversible_main else None
        self.top_down = TopDown(v)
        self.bottom_up = BottomUp(v)
        self.head = Head(
            (v.top_down[1].out, v.bottom_up[0].out, v.bottom_up[1].out), num_classes, box_groups, class_width
        )
        self.aux: ReversibleBranch | TopDown | None = None
        self.aux_head: Head | None = None
        if form == "training":
            if v.pgi == "reversible":
                self.aux = ReversibleBranch(v, levels=(3, 4, 5))
                channels = (v.elan[0].out, v.elan[1].out, v.elan[2].out)
            else:
                self.aux = TopDown(v)
                channels = (v.top_down[1].out, v.top_down[0].out, v.spp[0])
            self.aux_head = Head(channels, num_classes, box_groups, aux_class_width)

    @property
    def form(self) -> Form:
        return "deployed" if self.aux is None else "training"

    def forward(self, images: Tensor) -> Outputs:
        """Images ``B x 3 x H x W``, RGB 0..1, H and W multiples of 32, to raw maps."""
        trunk = self.backbone(images)  # P1..P5, strides 2..32
        levels = trunk
        if self.reversible is not None:  # size e only: a second look at the image
            levels = self.reversible(images, trunk)
        main = self.head(self.bottom_up(*self.top_down(levels)))
        if self.aux is None or self.aux_head is None:  # the deployed form
            return Outputs(main, None)
        aux = self.aux(images, trunk) if isinstance(self.aux, ReversibleBranch) else self.aux(trunk)
        return Outputs(main, self.aux_head(aux[-3:]))  # PGI: the training form


def yolov9(size: str, num_classes: int = 80, form: str = "training") -> YOLOv9:
    """A new model with random weights.

    Args:
        size: ``t``, ``s``, ``m``, ``c`` or ``e``.
        num_classes: C, at least 1.
        form: ``training`` (with the auxiliary branch) or ``deployed`` (without it).

    Raises:
        UsageError: an unknown size or form, or fewer than one class.
    """
    if size not in VARIANTS:
        raise UsageError(f"size {size!r}: YOLOv9 has the sizes {', '.join(VARIANTS)}")
    if form not in get_args(Form):
        raise UsageError(f"form {form!r}: a model is 'training' (with the auxiliary branch) or 'deployed'")
    if num_classes < 1:
        raise UsageError(f"num_classes {num_classes}: a detector needs at least one class")
    return YOLOv9(cast(Size, size), num_classes, cast(Form, form))


def deployed(model: YOLOv9) -> YOLOv9:
    """The model without its auxiliary branch: a new object that shares nothing with the old one."""
    aux, aux_head = model.aux, model.aux_head
    # memo entries keep deepcopy from copying what is dropped anyway
    lean = copy.deepcopy(model, {id(aux): None, id(aux_head): None})
    lean.aux = lean.aux_head = None
    return lean


def main_branch(model: YOLOv9) -> YOLOv9:
    """The same network without its auxiliary branch: a view that shares every weight with ``model``."""
    view = copy.copy(model)
    view._modules = {**model._modules, "aux": None, "aux_head": None}
    return view


def parameter_count(model: nn.Module) -> int:
    """Number of learned parameters."""
    return sum(p.numel() for p in model.parameters())
