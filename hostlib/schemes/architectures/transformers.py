# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Layers of transformers; a sample is a whole sequence of tokens.

A projection sees every token, so that its gradient is a sum of one outer product per token, not per
sample: its factors are larger than its matrix, and its kind is "other". Weights and bias of a
projection, and the normalisation behind it, are one layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..models import Model, ModelLayer, fully_connected


@dataclass(frozen=True, kw_only=True)
class TransformerShape:
    """Sizes of a stack of equal blocks."""

    width: int
    """Features of a token."""
    blocks: int
    inner: int
    """Features between the two projections that follow the attention."""
    tokens: int
    """Tokens of a sequence."""


def _projection(
    name: str, shape: TransformerShape, sizes: tuple[int, int], *, extra: int = 0, products: int = 0
) -> ModelLayer:
    """Return a projection of all tokens; `extra` values and `products` belong to it."""
    inputs, outputs = sizes
    return ModelLayer(
        name=name,
        kind="other",
        num_values=inputs * outputs + outputs + extra,
        multiplications=shape.tokens * inputs * outputs + products,
    )


def _blocks(shape: TransformerShape) -> list[ModelLayer]:
    """Return attention and two projections for each block, with two normalisations."""
    layers: list[ModelLayer] = []
    width, inner = shape.width, shape.inner
    scores = 2 * shape.tokens**2 * width  # queries by keys, and their weights by values
    for number in range(1, shape.blocks + 1):
        name = f"block{number}"
        layers += (
            _projection(f"{name}.qkv", shape, (width, 3 * width), products=scores),
            _projection(f"{name}.attention", shape, (width, width), extra=2 * width),
            _projection(f"{name}.up", shape, (width, inner)),
            _projection(f"{name}.down", shape, (inner, width), extra=2 * width),
        )
    return layers


def _table(name: str, num_values: int) -> ModelLayer:
    return ModelLayer(name=name, kind="other", num_values=num_values)


def bert_base() -> Model:
    """Return BERT-base: 109.48 million parameters, sequences of 512 tokens."""
    shape = TransformerShape(width=768, blocks=12, inner=3072, tokens=512)
    width = shape.width
    layers = [
        _table("words", 30_522 * width),
        _table("positions", shape.tokens * width),
        _table("segments", 2 * width + 2 * width),  # with the normalisation of the sum
        *_blocks(shape),
        # Of a sequence, it sees the first token alone: one outer product per sample.
        *fully_connected("pooler", width, width),
    ]
    return Model(
        name="bert-base",
        source="Devlin et al., arXiv 1810.04805, uncased, with its pooler; 512 tokens",
        layers=tuple(layers),
    )


def gpt2() -> Model:
    """Return the smallest GPT-2: 124.44 million parameters, sequences of 1024 tokens."""
    shape = TransformerShape(width=768, blocks=12, inner=3072, tokens=1024)
    width = shape.width
    head = ModelLayer(
        name="norm",
        kind="other",
        num_values=2 * width,
        multiplications=shape.tokens * width * _GPT2_WORDS,  # logits, by the table of words
    )
    layers = [
        # Input and output share this table, so that its gradient is complete at the very end.
        _table("words", _GPT2_WORDS * width),
        _table("positions", shape.tokens * width),
        *_blocks(shape),
        head,
    ]
    return Model(
        name="gpt-2",
        source="Radford et al., 2019, the smallest; 1024 tokens, input and output share a table",
        layers=tuple(layers),
    )


_GPT2_WORDS: Final = 50_257
