# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A layer as the cost model sees it: its kind, its matrix, how many values are exchanged for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Self, cast, get_args

from hostlib.errors import SchemeError

LayerKind = Literal["fc", "conv", "other"]
LAYER_KINDS: Final[tuple[LayerKind, ...]] = get_args(LayerKind)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One exchanged parameter; a bias is a layer of its own, of kind "other"."""

    name: str
    kind: LayerKind
    rows: int = 0
    """M: outputs of a fully connected layer; 0 where there is no matrix."""
    columns: int = 0
    """N: inputs of a fully connected layer; 0 where there is no matrix."""
    num_values: int = 0
    """Values of the gradient; 0: rows times columns."""

    def __post_init__(self) -> None:
        if not self.name:
            raise SchemeError("a layer has no name; give each its own")
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
        """Of the gradient in float32."""
        return 4 * self.num_values

    def as_dict(self) -> dict[str, str | int]:
        """Return the fields, for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "rows": self.rows,
            "columns": self.columns,
            "num_values": self.num_values,
        }

    @classmethod
    def from_dict(cls, fields: object) -> Self:
        """Return the layer that a dict describes; SchemeError names what is wrong with it."""
        if not isinstance(fields, dict):
            raise SchemeError(f"a layer is described by {fields!r}; write name, kind and sizes")
        entries = cast("dict[str, object]", fields)
        name = str(entries.get("name", ""))
        unknown = sorted(set(entries) - {"name", "kind", "rows", "columns", "num_values"})
        if unknown:
            raise SchemeError(
                f"layer {name}: unknown field {unknown[0]!r}; known are name, kind, rows, columns"
                " and num_values"
            )
        sizes: dict[str, int] = {}
        for key in ("rows", "columns", "num_values"):
            value = entries.get(key, 0)
            if not isinstance(value, int) or isinstance(value, bool):
                raise SchemeError(f"layer {name}: {key} is {value!r}; write a whole number")
            sizes[key] = value
        kind = cast("LayerKind", entries.get("kind", ""))
        return cls(name=name, kind=kind, **sizes)
