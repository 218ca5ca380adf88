# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The models that commands know by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .architectures.inception import inception_v3
from .architectures.transformers import bert_base, gpt2
from .models import RESNET_50, RESNET_152, VGG19, VGG19_22K, Model, alexnet

MODELS: Final[Mapping[str, Model]] = {
    model.name: model
    for model in (
        *(VGG19, VGG19_22K, alexnet(), RESNET_50, RESNET_152),
        *(inception_v3(), bert_base(), gpt2()),
    )
}
"""By name."""
