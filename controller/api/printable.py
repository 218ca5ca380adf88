# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Untrusted text for a terminal or an error: escaped and shortened."""

from __future__ import annotations

from typing import Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ...hostlib.observing.logs import escaped

_QUOTED: Final = 64
"""Characters of a value that an error shows."""
MAX_DETAILS: Final = 2000
"""Characters of a refusal; gRPC drops metadata beyond 8 KiB."""


def quoted(text: str) -> str:
    """Return the beginning of a text in quotes, escaped, with its length if that is not all."""
    if len(text) <= _QUOTED:
        return f"'{escaped(text)}'"
    return f"'{escaped(text[:_QUOTED])}' and {len(text) - _QUOTED} more characters"


def details(error: Exception) -> str:
    """Return an error's text as the details of a gRPC status."""
    text = escaped(str(error))
    if len(text) <= MAX_DETAILS:
        return text
    return f"{text[:MAX_DETAILS]} ... and {len(text) - MAX_DETAILS} more characters"


def escape_message(message: Message) -> None:
    """Escape every text of a message in place."""
    for field, value in message.ListFields():
        is_message = field.type == FieldDescriptor.TYPE_MESSAGE
        if is_message:
            for part in value if field.is_repeated else (value,):
                escape_message(part)
        elif field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                value[:] = [escaped(text) for text in value]
            else:
                setattr(message, field.name, escaped(value))
