# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A layer of the cost model: its kind, the size of its matrix, and its number of values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, cast, get_args

from ..errors import SchemeError

LayerKind = Literal["fc", "conv", "other"]
LAYER_KINDS: Final[tuple[LayerKind, ...]] = get_args(LayerKind)
_TEXTS: Final = ("name", "kind")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One exchanged parameter; a bias is a layer of its own, of kind "other"."""

    name: str
    kind: LayerKind
    rows: int = 0
    """M, outputs of a fully connected layer; 0 for other layers."""
    columns: int = 0
    """N, inputs of a fully connected layer; 0 for other layers."""
    num_values: int = 0
    """Values of the gradient; 0: rows times columns."""

    def __post_init__(self) -> None:
        if not self.name:
            raise SchemeError("a layer has no name; give each layer a name of its own")
        if self.kind not in LAYER_KINDS:
            raise SchemeError(
                f"layer {self.name}: kind {self.kind!r}; choose {', '.join(LAYER_KINDS)}"
            )
        if min(self.rows, self.columns, self.num_values) < 0:
            raise SchemeError(f"layer {self.name}: a size is negative")
        matrix = self.rows * self.columns
        if self.num_values == 0:
            object.__setattr__(self, "num_values", matrix)
        if self.num_values == 0:
            raise SchemeError(
                f"layer {self.name} has no values; give num_values, or rows and columns"
            )
        if self.kind == "fc" and self.num_values != matrix:
            raise SchemeError(
                f"layer {self.name}: {self.num_values} values are not {self.rows} x"
                f" {self.columns}; list its bias as a layer of kind 'other'"
            )

    @property
    def has_factors(self) -> bool:
        """Whether its gradient is a sum of outer products, one per sample."""
        return self.kind == "fc"

    @property
    def num_bytes(self) -> int:
        """Bytes of the gradient in float32."""
        return 4 * self.num_values

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: object) -> Self:
        """Return the layer that a dict describes; SchemeError names the wrong field."""
        if not isinstance(fields, dict):
            raise SchemeError(f"a layer is described by {fields!r}; write name, kind and sizes")
        entries = cast("dict[str, Any]", fields)
        name = entries.get("name", "")
        known = {field.name: field.type for field in dataclasses.fields(cls)}
        for key, value in entries.items():
            if key not in known:
                raise SchemeError(
                    f"layer {name}: unknown field {key!r}; known are {', '.join(known)}"
                )
            if key in _TEXTS:
                is_right = isinstance(value, str)
            else:
                accepted = (int, float) if known[key] == "float" else int
                is_right = isinstance(value, accepted) and not isinstance(value, bool)
            if not is_right:
                wanted = "text" if key in _TEXTS else "number"
                raise SchemeError(f"layer {name}: {key} is {value!r}, which is no {wanted}")
        missing = [key for key in _TEXTS if key not in entries]
        if missing:
            raise SchemeError(f"layer {name or entries}: it has no {missing[0]}")
        return cls(**entries)
