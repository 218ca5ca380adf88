# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Known models: sizes of layers, and multiplications of a forward pass per sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..errors import SchemeError
from .layer import Layer


@dataclass(frozen=True, kw_only=True)
class ModelLayer(Layer):
    """A layer with its computing cost."""

    multiplications: int = 0
    """Multiply-accumulate operations of a forward pass for one sample."""
    forward_s: float = 0.0
    backward_s: float = 0.0
    """Measured seconds (also `forward_s`) with the predicted batch; 0: from multiplications."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model: its layers from input to output."""

    name: str
    source: str
    """Paper or file with the sizes."""
    layers: tuple[ModelLayer, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise SchemeError(f"model {self.name} has no layers")
        names = [layer.name for layer in self.layers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemeError(f"model {self.name}: two layers are called {twice[0]}")

    @property
    def num_values(self) -> int:
        """Number of parameters of all layers."""
        return sum(layer.num_values for layer in self.layers)


def conv(
    name: str, inputs: int, outputs: int, kernel: int, size: int, *, bias: int = 0
) -> ModelLayer:
    """Return a convolution with square kernels and an output of `size` x `size`.

    `inputs` are the channels that one kernel sees: those of its group, if there are groups.
    """
    weights = outputs * inputs * kernel * kernel
    return ModelLayer(
        name=name,
        kind="conv",
        num_values=weights + bias,
        multiplications=weights * size * size,
    )


def fully_connected(name: str, inputs: int, outputs: int) -> tuple[ModelLayer, ModelLayer]:
    """Return a fully connected layer as two layers: its weights and its bias."""
    weights = ModelLayer(
        name=name, kind="fc", rows=outputs, columns=inputs, multiplications=inputs * outputs
    )
    return weights, ModelLayer(name=f"{name}.bias", kind="other", num_values=outputs)


def _vgg19(name: str, source: str, classes: int) -> Model:
    layers: list[ModelLayer] = []
    inputs = 3
    for block, (outputs, count, size) in enumerate(
        ((64, 2, 224), (128, 2, 112), (256, 4, 56), (512, 4, 28), (512, 4, 14)), start=1
    ):
        for number in range(1, count + 1):
            layers.append(conv(f"conv{block}_{number}", inputs, outputs, 3, size, bias=outputs))
            inputs = outputs
    for fc, width, outputs in (("fc6", 25088, 4096), ("fc7", 4096, 4096), ("fc8", 4096, classes)):
        layers += fully_connected(fc, width, outputs)
    return Model(name=name, source=source, layers=tuple(layers))


def alexnet() -> Model:
    """Return AlexNet."""
    layers: list[ModelLayer] = []
    for name, inputs, outputs, kernel, size, groups in (
        ("conv1", 3, 96, 11, 55, 1),
        ("conv2", 96, 256, 5, 27, 2),
        ("conv3", 256, 384, 3, 13, 1),
        ("conv4", 384, 384, 3, 13, 2),
        ("conv5", 384, 256, 3, 13, 2),
    ):
        layers.append(conv(name, inputs // groups, outputs, kernel, size, bias=outputs))
    for name, width, outputs in (("fc6", 9216, 4096), ("fc7", 4096, 4096), ("fc8", 4096, 1000)):
        layers += fully_connected(name, width, outputs)
    return Model(
        name="alexnet",
        source="Krizhevsky, Sutskever and Hinton, NeurIPS 2012, with its two groups",
        layers=tuple(layers),
    )


def _resnet(name: str, counts: tuple[int, int, int, int]) -> Model:
    """Return a residual network of bottleneck blocks, so many in each of four stages."""
    layers = [conv("conv1", 3, 64, 7, 112, bias=2 * 64)]
    inputs = 64
    for stage, (width, blocks, size) in enumerate(
        zip((64, 128, 256, 512), counts, (56, 28, 14, 7), strict=True), start=2
    ):
        for block in range(1, blocks + 1):
            prefix = f"conv{stage}_{block}"
            # In the original, the first convolution of a stage works on the larger image;
            # torchvision strides in the 3 x 3 one. Both have the same number of parameters.
            before = size * 2 if block == 1 and stage > 2 else size
            layers.append(conv(f"{prefix}a", inputs, width, 1, before, bias=2 * width))
            layers.append(conv(f"{prefix}b", width, width, 3, size, bias=2 * width))
            layers.append(conv(f"{prefix}c", width, 4 * width, 1, size, bias=8 * width))
            if block == 1:
                layers.append(conv(f"{prefix}p", inputs, 4 * width, 1, size, bias=8 * width))
            inputs = 4 * width
    layers += fully_connected("fc", 2048, 1000)
    return Model(
        name=name,
        source="He et al., arXiv 1512.03385, table 1; batch normalisation with its two vectors",
        layers=tuple(layers),
    )


_VGG: Final = "Simonyan and Zisserman, arXiv 1409.1556, configuration E"
VGG19: Final = _vgg19("vgg19", _VGG, 1000)
VGG19_22K: Final = _vgg19("vgg19-22k", f"{_VGG}, with the 21,841 classes of ImageNet22K", 21_841)
RESNET_50: Final = _resnet("resnet-50", (3, 4, 6, 3))
RESNET_152: Final = _resnet("resnet-152", (3, 8, 36, 3))
