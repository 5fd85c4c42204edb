"""Networks of images as lists of operators, from their published architectures.

What a network holds and does for one image; what that costs is in :mod:`va100.plan.vision`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from va100.plan.workload import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator on one image.

    ``conv``: ``cin`` to ``cout`` channels on ``height x width`` outputs' grid before the stride.
    ``linear``: ``tokens`` rows of ``cin`` to ``cout``.  ``attention``: ``tokens`` queries over
    ``keys``, ``heads`` of ``cout / heads``.  ``stream``: ``elements`` values read and written.
    """

    name: str
    kind: str
    cin: int = 0
    cout: int = 0
    height: int = 0
    width: int = 0
    ksize: int = 1
    stride: int = 1
    groups: int = 1
    tokens: int = 0
    keys: int = 0
    heads: int = 1
    elements: int = 0
    params: int = 0
    frozen: bool = False
    kernels: int = 1
    """Kernels that a framework starts for it: biases, copies and reshapes are its own."""
    depth: int = 1
    """Slices of a three-dimensional convolution, before the stride; its filter is a cube."""

    @property
    def out_elements(self) -> int:
        """Values that it puts out."""
        if self.kind == "conv":
            area = -(-self.height // self.stride) * -(-self.width // self.stride)
            return self.cout * area * -(-self.depth // (self.stride if self.depth > 1 else 1))
        if self.kind == "stream":
            return self.elements
        return self.tokens * self.cout

    @property
    def flop_count(self) -> float:
        """Multiply-adds times two."""
        if self.kind == "conv":
            taps = self.ksize**2 * (self.ksize if self.depth > 1 else 1)
            return 2.0 * self.out_elements * self.cin // self.groups * taps
        if self.kind == "linear":
            return 2.0 * self.tokens * self.cin * self.cout
        if self.kind == "attention":
            return 4.0 * self.tokens * self.keys * self.cout
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network: its operators on one image, and how often they run for one."""

    name: str
    text: str
    image: int
    operators: tuple[Operator, ...]
    passes: int = 1
    """Forward passes for one result: steps of a diffusion, twice with guidance."""
    unit: str = "images"
    host_image_s: float = 0.0
    """Of the host for each image: matching and suppression on small tensors; fitted to published
    throughputs of one framework's detectors, so a rough figure."""
    host_batch_s: float = 0.0
    """The same for each batch."""

    @property
    def params(self) -> int:
        """Parameters of all operators."""
        return sum(operator.params for operator in self.operators)

    @property
    def flop_count(self) -> float:
        """Work of one pass over one image."""
        return sum(operator.flop_count for operator in self.operators)


def _conv(  # noqa: PLR0913 -- a convolution has so many
    name: str, shape: tuple[int, int], size: int, ksize: int = 1, stride: int = 1, *,
    bias: bool = False, norm: bool = True, depth: int = 1,
) -> Operator:  # fmt: skip
    """A convolution on a square image, with the normalisation after it."""
    cin, cout = shape
    taps = ksize**2 * (ksize if depth > 1 else 1)
    params = cin * cout * taps + cout * bias + 2 * cout * norm
    return Operator(
        name=name, kind="conv", cin=cin, cout=cout, height=size, width=size, ksize=ksize,
        stride=stride, params=params, depth=depth,
    )  # fmt: skip


def _linear(
    name: str, tokens: int, cin: int, cout: int, *, bias: bool = True, kernels: int = 1
) -> Operator:
    return Operator(
        name=name,
        kind="linear",
        tokens=tokens,
        cin=cin,
        cout=cout,
        params=cin * cout + cout * bias,
        kernels=kernels,
    )


def _stream(name: str, elements: int, params: int = 0) -> Operator:
    return Operator(name=name, kind="stream", elements=elements, params=params)


def _bottlenecks(
    name: str, cin: int, width: int, count: int, size: int, stride: int
) -> tuple[list[Operator], int]:
    """A stage of residual bottlenecks, its stride in the first 3x3; and the size after it."""
    found = []
    for index in range(count):
        step = stride if index == 0 else 1
        first = cin if index == 0 else 4 * width
        title = f"{name}.{index}"
        after = -(-size // step)
        found += [
            _conv(f"{title}.1", (first, width), size),
            _conv(f"{title}.2", (width, width), size, 3, step),
            _conv(f"{title}.3", (width, 4 * width), after),
        ]
        if index == 0:
            found.append(_conv(f"{title}.short", (first, 4 * width), size, 1, step))
        found.append(_stream(f"{title}.sum", 4 * width * after**2))
        size = after
    return found, size


def _resnet_body(image: int, stages: int = 4) -> tuple[list[Operator], list[int]]:
    found = [_conv("stem", (3, 64), image, 7, 2), _stream("pool", 64 * (image // 2) ** 2)]
    size, cin, sizes = image // 4, 64, []
    rows = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
    for number, (width, count, stride) in enumerate(rows[:stages], 1):
        more, size = _bottlenecks(f"stage{number}", cin, width, count, size, stride)
        found += more
        sizes.append(size)
        cin = 4 * width
    return found, sizes


def resnet50(image: int = 224) -> Network:
    """ResNet-50 v1.5."""
    body, _ = _resnet_body(image)
    head = [_stream("mean", 2048 * 49), _linear("classes", 1, 2048, 1000)]
    return Network(
        name="resnet50", text="ResNet-50 v1.5", image=image, operators=tuple(body + head)
    )


def ssd300(image: int = 300) -> Network:
    """SSD with ResNet-50 up to its third stage, whose stride is taken out."""
    body, _ = _resnet_body(image, 2)
    size = image // 8 + 1
    third, _ = _bottlenecks("stage3", 512, 256, 6, size, 1)
    extra = []
    at, cin = size, 1024
    for number, (middle, out, step) in enumerate(
        ((256, 512, 2), (256, 512, 2), (128, 256, 2), (128, 256, 2), (128, 256, 2)), 1
    ):
        extra += [
            _conv(f"extra{number}.1", (cin, middle), at),
            _conv(f"extra{number}.2", (middle, out), at, 3, step),
        ]
        at, cin = -(-at // step), out
    heads = []
    maps = ((size, 1024, 4), (19, 512, 6), (10, 512, 6), (5, 256, 6), (3, 256, 4), (1, 256, 4))
    for number, (side, channels, boxes) in enumerate(maps):
        for kind, each in (("boxes", 4), ("classes", 81)):
            shape = (channels, boxes * each)
            heads.append(_conv(f"{kind}{number}", shape, side, 3, bias=True, norm=False))
    return Network(
        name="ssd300",
        text="SSD300 on ResNet-50",
        image=image,
        host_image_s=0.25e-3,
        operators=tuple(body + third + extra + heads),
    )


def maskrcnn(image: int = 1024) -> Network:
    """Mask R-CNN with a ResNet-50 feature pyramid, 1000 proposals and 100 masks an image."""
    body, sizes = _resnet_body(image)
    pyramid = []
    for level, (size, channels) in enumerate(zip(sizes, (256, 512, 1024, 2048), strict=True)):
        pyramid += [
            _conv(f"lateral{level}", (channels, 256), size, bias=True, norm=False),
            _conv(f"pyramid{level}", (256, 256), size, 3, bias=True, norm=False),
        ]
    proposals = []
    for level, size in enumerate((*sizes, -(-sizes[-1] // 2))):
        shared = _conv(f"proposals{level}", (256, 256), size, 3, bias=True, norm=False)
        outs = _conv(f"anchors{level}", (256, 15), size, bias=True, norm=False)
        proposals += [shared, outs] if level == 0 else [_no_params(shared), _no_params(outs)]
    boxes = [
        _stream("align", 1000 * 256 * 49 * 4),
        _linear("box1", 1000, 256 * 49, 1024),
        _linear("box2", 1000, 1024, 1024),
        _linear("box out", 1000, 1024, 91 * 5),
    ]
    masks = []
    for number in range(4):
        each = _conv(f"mask{number}", (256, 256), 140, 3, bias=True, norm=False)
        masks.append(each)
    masks += [
        _conv("mask up", (256, 256), 280, 2, bias=True, norm=False),
        _conv("mask out", (256, 91), 280, bias=True, norm=False),
    ]
    return Network(
        name="maskrcnn",
        text="Mask R-CNN on ResNet-50 and a feature pyramid",
        image=image,
        host_batch_s=0.09,
        operators=tuple(body + pyramid + proposals + boxes + masks),
    )


def _no_params(operator: Operator) -> Operator:
    return replace(operator, params=0)


def _vit(name: str, shape: tuple[int, int, int, int], image: int) -> Network:
    width, layers, heads, patch = shape
    grid = image // patch
    tokens = grid**2 + 1
    found = [
        _conv("patches", (3, width), image, patch, patch, bias=True, norm=False),
        _stream("positions", tokens * width, (tokens + 1) * width),
    ]
    for index in range(layers):
        found += _encoder(f"layer{index}", tokens, width, heads)
    found += [_stream("norm", tokens * width, 2 * width), _linear("classes", 1, width, 1000)]
    return Network(name=name, text=f"ViT, patches of {patch}", image=image, operators=tuple(found))


def _encoder(name: str, tokens: int, width: int, heads: int) -> list[Operator]:
    """A transformer's layer: attention and an MLP of four times the width."""
    return [
        _stream(f"{name}.norm1", tokens * width, 2 * width),
        _linear(f"{name}.qkv", tokens, width, 3 * width),
        Operator(
            name=f"{name}.attention", kind="attention", tokens=tokens, keys=tokens, cout=width,
            heads=heads,
        ),
        _linear(f"{name}.out", tokens, width, width),
        _stream(f"{name}.norm2", 2 * tokens * width, 2 * width),
        _linear(f"{name}.up", tokens, width, 4 * width),
        _stream(f"{name}.gelu", 4 * tokens * width),
        _linear(f"{name}.down", tokens, 4 * width, width),
    ]  # fmt: skip


def vit_b_16(image: int = 224) -> Network:
    """ViT-B/16."""
    return _vit("vit-b-16", (768, 12, 12, 16), image)


def vit_l_16(image: int = 224) -> Network:
    """ViT-L/16."""
    return _vit("vit-l-16", (1024, 24, 16, 16), image)


def vit_h_14(image: int = 224) -> Network:
    """ViT-H/14."""
    return _vit("vit-h-14", (1280, 32, 16, 14), image)


def diffusion(image: int = 512) -> Network:
    """The U-Net of Stable Diffusion 1.5, fifty steps with guidance."""
    widths, size, time = (320, 640, 1280, 1280), image // 8, 1280
    found = [
        _conv("in", (4, 320), size, 3, bias=True, norm=False),
        _linear("time1", 1, 320, time),
        _linear("time2", 1, time, time),
    ]
    skips, cin = [320], 320
    for level, width in enumerate(widths):
        for block in range(2):
            found += _residual(f"down{level}.{block}", (cin, width), size, time)
            found += _crossed(f"down{level}.{block}", width, size) if level < 3 else []
            cin = width
            skips.append(width)
        if level < 3:
            found.append(
                _conv(f"down{level}.half", (width, width), size, 3, 2, bias=True, norm=False)
            )
            size //= 2
            skips.append(width)
    found += _residual("middle.0", (1280, 1280), size, time)
    found += _crossed("middle", 1280, size) + _residual("middle.1", (1280, 1280), size, time)
    for level, width in reversed(list(enumerate(widths))):
        for block in range(3):
            found += _residual(f"up{level}.{block}", (cin + skips.pop(), width), size, time)
            found += _crossed(f"up{level}.{block}", width, size) if level < 3 else []
            cin = width
        if level:
            size *= 2
            found.append(_conv(f"up{level}.twice", (width, width), size, 3, bias=True, norm=False))
    found.append(_stream("out norm", 320 * size**2, 640))
    found.append(_conv("out", (320, 4), size, 3, bias=True, norm=False))
    return Network(
        name="diffusion",
        text="Stable Diffusion 1.5, 50 steps with guidance; text encoder and decoder left out",
        image=image,
        operators=tuple(found),
        passes=100,
    )


def _residual(name: str, shape: tuple[int, int], size: int, time: int) -> list[Operator]:
    cin, cout = shape
    area = size**2
    found = [
        _stream(f"{name}.norm1", cin * area, 2 * cin),
        _conv(f"{name}.1", (cin, cout), size, 3, bias=True, norm=False),
        _linear(f"{name}.time", 1, time, cout),
        _stream(f"{name}.norm2", cout * area, 2 * cout),
        _conv(f"{name}.2", (cout, cout), size, 3, bias=True, norm=False),
        _stream(f"{name}.sum", cout * area),
    ]
    if cin != cout:
        found.append(_conv(f"{name}.short", (cin, cout), size, bias=True, norm=False))
    return found


def _crossed(name: str, width: int, size: int, text: int = 768, words: int = 77) -> list[Operator]:
    """A transformer block: attention over the image, over the words, and a gated MLP."""
    tokens = size**2

    def core(title: str, keys: int) -> Operator:
        return Operator(name=title, kind="attention", tokens=tokens, keys=keys, cout=width, heads=8)

    return [
        _stream(f"{name}.norm", tokens * width, 2 * width),
        _conv(f"{name}.in", (width, width), size, bias=True, norm=False),
        _stream(f"{name}.norm1", tokens * width, 2 * width),
        _linear(f"{name}.qkv", tokens, width, 3 * width, bias=False),
        core(f"{name}.self", tokens),
        _linear(f"{name}.self out", tokens, width, width),
        _stream(f"{name}.norm2", tokens * width, 2 * width),
        _linear(f"{name}.q", tokens, width, width, bias=False),
        _linear(f"{name}.kv", words, text, 2 * width, bias=False),
        core(f"{name}.cross", words),
        _linear(f"{name}.cross out", tokens, width, width),
        _stream(f"{name}.norm3", tokens * width, 2 * width),
        _linear(f"{name}.up", tokens, width, 8 * width),
        _stream(f"{name}.gate", 8 * tokens * width),
        _linear(f"{name}.down", tokens, 4 * width, width),
        _conv(f"{name}.out", (width, width), size, bias=True, norm=False),
    ]


def nnunet(image: int = 128) -> Network:
    """A three-dimensional U-Net of nnU-Net's plan: 32 to 320 channels, five halvings."""
    widths, size, cin, found = (32, 64, 128, 256, 320, 320), image, 4, []
    for level, width in enumerate(widths):
        stride = 1 if level == 0 else 2
        found.append(_conv(f"down{level}.0", (cin, width), size, 3, stride, depth=size))
        size = -(-size // stride)
        found.append(_conv(f"down{level}.1", (width, width), size, 3, depth=size))
        cin = width
    for level, width in reversed(list(enumerate(widths[:-1]))):
        size *= 2
        found.append(_conv(f"up{level}.twice", (cin, width), size // 2, 1, depth=size // 2))
        found.append(_conv(f"up{level}.0", (2 * width, width), size, 3, depth=size))
        found.append(_conv(f"up{level}.1", (width, width), size, 3, depth=size))
        cin = width
    found.append(_conv("out", (32, 4), size, 1, bias=True, norm=False, depth=size))
    return Network(
        name="nnunet", text="3D U-Net of nnU-Net", image=image, operators=tuple(found),
        unit="volumes",
    )  # fmt: skip


NETWORKS: Final[Mapping[str, Callable[[int], Network]]] = {
    "diffusion": diffusion,
    "maskrcnn": maskrcnn,
    "nnunet": nnunet,
    "resnet50": resnet50,
    "ssd300": ssd300,
    "vit-b-16": vit_b_16,
    "vit-h-14": vit_h_14,
    "vit-l-16": vit_l_16,
}
IMAGES: Final[Mapping[str, int]] = {
    "diffusion": 512,
    "maskrcnn": 1024,
    "nnunet": 128,
    "resnet50": 224,
    "ssd300": 300,
    "vit-b-16": 224,
    "vit-h-14": 224,
    "vit-l-16": 224,
}


TANH_PASSES: Final = 4


def _logits(model: Transformer, tokens: int) -> Operator:
    whole = _linear("logits", tokens, model.hidden, model.vocab, bias=False)
    return whole if not model.tied else replace(whole, params=0)


def encoder_network(model: Transformer, tokens: int) -> Network:
    """A transformer's one pass over a sequence, as a network: BERT and its like."""
    found = [_stream("embedding", 3 * tokens * model.hidden, model.embedding_params)]
    query, keys = model.heads * model.head_dim, 2 * model.kv_heads * model.head_dim
    ups = 2 if model.gated else 1
    # GPT-2's activation is a formula of tanh, which frameworks run operator by operator.
    passes = 1 if model.gated or not model.causal else TANH_PASSES
    for index in range(model.layers):
        title = f"layer{index}"
        rest = model.layer_params(index) - model.hidden * (2 * query + keys)
        rest -= (ups + 1) * model.hidden * model.ffn
        found += [
            _linear(f"{title}.qkv", tokens, model.hidden, query + keys, bias=False, kernels=5),
            Operator(
                name=f"{title}.attention",
                kind="attention",
                tokens=tokens,
                keys=tokens,
                cout=query,
                heads=model.heads,
            ),
            _linear(f"{title}.out", tokens, query, model.hidden, bias=False, kernels=5),
            _stream(f"{title}.norm1", 2 * tokens * model.hidden, rest),
            _linear(f"{title}.up", tokens, model.hidden, ups * model.ffn, bias=False, kernels=5),
            _stream(f"{title}.activation", passes * tokens * model.ffn),
            _linear(f"{title}.down", tokens, model.ffn, model.hidden, bias=False, kernels=5),
            _stream(f"{title}.norm2", 2 * tokens * model.hidden),
        ]
    if model.causal:
        found.append(_logits(model, tokens))
    return Network(
        name=model.name,
        text="one pass over a sequence",
        image=tokens,
        operators=tuple(found),
        unit="sequences",
    )
