# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Layers of Inception-V3 with its auxiliary classifier, for images of 299 x 299.

Szegedy et al., arXiv 1512.00567. Each convolution has batch normalisation with its two vectors.
"""

from __future__ import annotations

from typing import Final

from ..models import Model, ModelLayer, fully_connected

_Shape = tuple[int, int, int]
"""Outputs, kernel height and width of a convolution."""
_A_SIZE: Final = 35
_C_SIZE: Final = 17
_E_SIZE: Final = 8


def inception_v3() -> Model:
    """Return the model: 27.16 million parameters, of which the auxiliary classifier has 3.33."""
    stem = [
        _conv("conv1a", 3, (32, 3, 3), 149),
        _conv("conv2a", 32, (32, 3, 3), 147),
        _conv("conv2b", 32, (64, 3, 3), 147),
        _conv("conv3b", 64, (80, 1, 1), 73),
        _conv("conv4a", 80, (192, 3, 3), 71),
    ]
    return Model(
        name="inception-v3",
        source="Szegedy et al., arXiv 1512.00567, with its auxiliary classifier",
        layers=(*stem, *_upper_blocks(), *_lower_blocks()),
    )


def _upper_blocks() -> list[ModelLayer]:
    """Return the blocks on images of 35 x 35, and the step to 17 x 17."""
    layers: list[ModelLayer] = []
    for name, inputs, pooled in (("5b", 192, 32), ("5c", 256, 64), ("5d", 288, 64)):
        layers += _branch(f"{name}.1x1", inputs, _A_SIZE, (64, 1, 1))
        layers += _branch(f"{name}.5x5", inputs, _A_SIZE, (48, 1, 1), (64, 5, 5))
        layers += _branch(f"{name}.3x3", inputs, _A_SIZE, (64, 1, 1), (96, 3, 3), (96, 3, 3))
        layers += _branch(f"{name}.pool", inputs, _A_SIZE, (pooled, 1, 1))
    layers += _branch("6a.3x3", 288, _C_SIZE, (384, 3, 3))
    layers += _branch("6a.double", 288, _A_SIZE, (64, 1, 1), (96, 3, 3))
    layers.append(_conv("6a.double.3", 96, (96, 3, 3), _C_SIZE))
    return layers


def _lower_blocks() -> list[ModelLayer]:
    """Return the blocks on images of 17 x 17 and 8 x 8, and the classifiers."""
    layers: list[ModelLayer] = []
    for name, width in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        across, down = (width, 1, 7), (width, 7, 1)
        ends = (192, 7, 1), (192, 1, 7)
        layers += _branch(f"{name}.1x1", 768, _C_SIZE, (192, 1, 1))
        layers += _branch(f"{name}.7x7", 768, _C_SIZE, (width, 1, 1), across, ends[0])
        double = (width, 1, 1), down, across, down, ends[1]
        layers += _branch(f"{name}.double", 768, _C_SIZE, *double)
        layers += _branch(f"{name}.pool", 768, _C_SIZE, (192, 1, 1))
    layers += _branch("auxiliary", 768, 5, (128, 1, 1))
    layers.append(_conv("auxiliary.2", 128, (768, 5, 5), 1))
    layers += fully_connected("auxiliary.fc", 768, 1000)
    layers += _branch("7a.3x3", 768, _C_SIZE, (192, 1, 1))
    layers.append(_conv("7a.3x3.2", 192, (320, 3, 3), _E_SIZE))
    layers += _branch("7a.7x7", 768, _C_SIZE, (192, 1, 1), (192, 1, 7), (192, 7, 1))
    layers.append(_conv("7a.7x7.4", 192, (192, 3, 3), _E_SIZE))
    for name, inputs in (("7b", 1280), ("7c", 2048)):
        layers += _branch(f"{name}.1x1", inputs, _E_SIZE, (320, 1, 1))
        for branch, shapes in (
            ("3x3", ((384, 1, 1),)),
            ("double", ((448, 1, 1), (384, 3, 3))),
        ):
            layers += _branch(f"{name}.{branch}", inputs, _E_SIZE, *shapes)
            layers.append(_conv(f"{name}.{branch}.across", 384, (384, 1, 3), _E_SIZE))
            layers.append(_conv(f"{name}.{branch}.down", 384, (384, 3, 1), _E_SIZE))
        layers += _branch(f"{name}.pool", inputs, _E_SIZE, (192, 1, 1))
    layers += fully_connected("fc", 2048, 1000)
    return layers


def _branch(name: str, inputs: int, size: int, *shapes: _Shape) -> list[ModelLayer]:
    """Return convolutions that follow each other on images of one size."""
    layers: list[ModelLayer] = []
    for number, shape in enumerate(shapes, 1):
        layers.append(_conv(f"{name}.{number}", inputs, shape, size))
        inputs = shape[0]
    return layers


def _conv(name: str, inputs: int, shape: _Shape, size: int) -> ModelLayer:
    outputs, height, width = shape
    weights = outputs * inputs * height * width
    return ModelLayer(
        name=name,
        kind="conv",
        num_values=weights + 2 * outputs,
        multiplications=weights * size * size,
    )
