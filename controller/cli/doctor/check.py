# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Result of one check."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Status(enum.StrEnum):
    """Verdict of a check."""

    OK = "ok"
    WARN = "warn"
    """Works, but not as well as it could; or worth a look."""
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One verdict."""

    name: str
    status: Status
    text: str
    """What was found."""
    remedy: str = ""
    """What to do, empty when all is well."""


def ok(name: str, text: str) -> Check:
    """Return a passed check."""
    return Check(name, Status.OK, text)


def warn(name: str, text: str, remedy: str) -> Check:
    """Return a check with a remark."""
    return Check(name, Status.WARN, text, remedy)


def fail(name: str, text: str, remedy: str) -> Check:
    """Return a failed check."""
    return Check(name, Status.FAIL, text, remedy)
