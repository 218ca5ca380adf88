# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How the command line shows a testbed's errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import click

from ..errors import TestbedError


@contextmanager
def errors_shown() -> Generator[None]:
    """Turn a testbed's errors into one line and an exit code."""
    try:
        yield
    except TestbedError as exc:
        raise click.ClickException(str(exc)) from exc
    except ValueError as exc:  # the caller gave a wrong name or number
        raise click.UsageError(str(exc)) from exc
