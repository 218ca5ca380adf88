# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models described in TOML or JSON files: a name, and a list of layers from input to output."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, cast

from ..errors import SchemeError
from .known_models import MODELS
from .models import Model, ModelLayer


def find_model(text: str) -> Model:
    """Return a model by its name or its file; SchemeError lists the names or the file's fault."""
    if text in MODELS:
        return MODELS[text]
    path = Path(text)
    if path.suffix in {".toml", ".json"}:
        return load_model(path)
    raise SchemeError(
        f"no model {text!r}; write {', '.join(sorted(MODELS))}, or a file .toml or .json"
    )


def load_model(path: Path) -> Model:
    """Read a model from a file; SchemeError names file, layer and field."""
    try:
        content = path.read_text("utf-8")
        read: object = tomllib.loads(content) if path.suffix == ".toml" else json.loads(content)
    except (OSError, ValueError) as error:
        raise SchemeError(f"cannot read the model in {path}: {error}") from error
    if not isinstance(read, dict):
        raise SchemeError(f"{path}: a model has a name and layers")
    fields = cast("dict[str, Any]", read)
    layers = fields.get("layers", fields.get("layer"))
    if not isinstance(layers, list) or not layers:
        raise SchemeError(f"{path}: it lists no layers; write [[layers]] with name, kind and sizes")
    try:
        return Model(
            name=str(fields.get("name", path.stem)),
            source=str(path),
            layers=tuple(ModelLayer.from_dict(layer) for layer in cast("list[object]", layers)),
        )
    except SchemeError as error:
        raise SchemeError(f"{path}: {error}") from error
