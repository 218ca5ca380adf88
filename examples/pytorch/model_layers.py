# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Write a PyTorch model's layers for `switchfold scheme`, which predicts the gain of aggregation.

    python examples/pytorch/model_layers.py > mine.json
    switchfold scheme best --model mine.json --workers 4 --rate 1G
    switchfold scheme predict --model mine.json --iteration-ms 80 --rate 1G,100M --workers 4,8

Replace the model at the bottom with yours. Layers are listed in the order of a forward pass.
"""

import json

import torch
from torch import nn

LayerSizes = dict[str, str | int]


def model_layers(model: nn.Module, sample: torch.Tensor) -> list[LayerSizes]:
    """Return layers with sizes and multiplications; `sample` is a batch of one."""
    layers: dict[nn.Parameter, LayerSizes] = {}

    def note(name: str, module: nn.Module, output: torch.Tensor) -> None:
        weight = module.weight
        sizes: LayerSizes = {"kind": "conv", "num_values": weight.numel()}
        if isinstance(module, nn.Linear):
            rows, columns = weight.shape
            sizes = {"kind": "fc", "rows": rows, "columns": columns}
        layer = layers.setdefault(weight, {"name": name, "multiplications": 0, **sizes})
        layer["multiplications"] += output.numel() // weight.shape[0] * weight.numel()

    hooks = [
        module.register_forward_hook(lambda m, _, output, name=name: note(name, m, output))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
    ]
    with torch.no_grad():
        model(sample)
    for hook in hooks:
        hook.remove()
    others = [
        {"name": name, "kind": "other", "num_values": p.numel(), "multiplications": 0}
        for name, p in model.named_parameters()
        if p not in layers
    ]
    return [*layers.values(), *others]


if __name__ == "__main__":
    yours = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5408, 1000)
    )
    listed = model_layers(yours, torch.zeros(1, 1, 28, 28))
    print(json.dumps({"name": "mine", "layers": listed}, indent=1))
