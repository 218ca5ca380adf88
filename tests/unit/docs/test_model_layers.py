# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The example that writes a PyTorch model's layers for `switchfold scheme`."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

from switchfold.hostlib.schemes.model_file import load_model
from torch_ranks import load_torch, require_torch

require_torch()
EXAMPLE = Path(__file__).parents[3] / "examples" / "pytorch" / "model_layers.py"


def test_layers_have_their_sizes_and_shared_ones_all_uses(tmp_path: Path) -> None:
    torch, _ = load_torch()
    nn = torch.nn
    twice = nn.Linear(6, 6, bias=False)
    model = nn.Sequential(
        nn.Conv2d(4, 6, 3, groups=2), nn.Flatten(2), nn.Linear(9, 6), twice, twice
    )
    listed = runpy.run_path(str(EXAMPLE))["model_layers"](model, torch.zeros(1, 4, 5, 5))
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"name": "mine", "layers": listed}))
    read = load_model(path).layers
    assert [(each.name, each.kind, each.multiplications) for each in read] == [
        ("0", "conv", 9 * 6 * 2 * 9),
        ("2", "fc", 6 * 9 * 6),
        ("3", "fc", 2 * 6 * 6 * 6),
        ("0.bias", "other", 0),
        ("2.bias", "other", 0),
    ]
    assert sum(each.num_values for each in read) == sum(p.numel() for p in model.parameters())
