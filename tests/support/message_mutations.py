# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged messages, and messages made from their descriptors alone, for servers that are fuzzed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

INTERESTING: Final = (
    *(0, 1, 2, 7, 127, 255, 256, 65535),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1),
)
TEXTS: Final = ("", "a", "\x1b[2J", "x\ny", "n" * 300, "é")
_NUMBERS: Final = (1.5, -0.0, float("nan"), float("inf"), 1e300)


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, insert or repeat some bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0:
                changed[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del changed[at : at + rng.randint(1, 8)]
            case 2:
                changed[at:at] = rng.randbytes(rng.randint(1, 8))
            case _:
                changed[at:at] = changed[at : at + rng.randint(1, 16)]
    return bytes(changed)


def mutate_field(message: Message, rng: random.Random, text: str = "") -> None:
    """Change one field somewhere within the message; `text` is one of the values tried."""
    if not message.DESCRIPTOR.fields:
        return
    present = message.ListFields()
    if not present or rng.random() < 0.1:
        _set_scalar(message, rng.choice(message.DESCRIPTOR.fields), rng, text)
        return
    field, value = rng.choice(present)
    if field.message_type is None or rng.random() < 0.1:
        _set_scalar(message, field, rng, text)
    elif isinstance(value, Message):
        mutate_field(value, rng, text)
    elif len(value) and not field.message_type.GetOptions().map_entry:
        if rng.random() < 0.2:
            value.append(rng.choice(value))
        elif rng.random() < 0.1:
            del value[rng.randrange(len(value))]
        else:
            mutate_field(rng.choice(value), rng, text)


def _set_scalar(message: Message, field: FieldDescriptor, rng: random.Random, text: str) -> None:
    kinds = (
        rng.choice(INTERESTING),
        -rng.choice(INTERESTING),
        rng.randbytes(rng.choice((0, 1, 2, 6, 40))),
        text or rng.choice(TEXTS),
        True,
    )
    for value in rng.sample(kinds, len(kinds)):
        try:
            setattr(message, field.name, value)
        except (TypeError, ValueError, AttributeError, OverflowError):
            continue
        return
    message.ClearField(field.name)


def made_message(
    kind: type[Message], rng: random.Random, values: Mapping[str, Sequence[Any]]
) -> Message:
    """Return a message with fields drawn by their types.

    `values` has likely values of fields by their names, such as "JoinRequest.address".
    """
    message = kind()
    fill(message, rng, values)
    return message


def fill(message: Message, rng: random.Random, values: Mapping[str, Sequence[Any]]) -> None:
    """Set about half of the fields of a message, and likewise of the messages in it."""
    groups: set[str] = set()
    for field in rng.sample(list(message.DESCRIPTOR.fields), len(message.DESCRIPTOR.fields)):
        group = field.containing_oneof
        if group is not None and len(group.fields) == 1:
            group = None  # an optional field
        if rng.random() < _chance_to_omit(field, values) and not (
            group and group.name not in groups
        ):
            continue
        if group is not None:
            if group.name in groups:
                continue
            groups.add(group.name)
        _fill_field(message, field, rng, values)


def _chance_to_omit(field: FieldDescriptor, values: Mapping[str, Sequence[Any]]) -> float:
    """Messages with likely values are mostly valid: with these values, and not with others."""
    kind = field.containing_type
    assert kind is not None
    if f"{kind.name}.{field.name}" in values:
        return 0.02
    return 0.97 if any(name.startswith(f"{kind.name}.") for name in values) else 0.3


def _fill_field(
    message: Message,
    field: FieldDescriptor,
    rng: random.Random,
    values: Mapping[str, Sequence[Any]],
) -> None:
    count = rng.choice((0, 1, 3)) if field.is_repeated else 1
    for _ in range(count):
        if field.message_type is not None:
            part = getattr(message, field.name)
            fill(part.add() if field.is_repeated else part, rng, values)
            if not field.is_repeated:
                part.SetInParent()
            continue
        likely = values.get(f"{message.DESCRIPTOR.name}.{field.name}")
        value = rng.choice(likely) if likely and rng.random() < 0.98 else _any_value(field, rng)
        try:
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
        except (ValueError, OverflowError):  # out of the type's range
            continue


def _any_value(field: FieldDescriptor, rng: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            if field.type == FieldDescriptor.TYPE_BYTES:
                return rng.randbytes(rng.choice((0, 1, 16, 32, 70)))
            return rng.choice(TEXTS)
        case FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return rng.choice(_NUMBERS)
        case _:
            return rng.choice(INTERESTING) * rng.choice((1, 1, 1, -1))
