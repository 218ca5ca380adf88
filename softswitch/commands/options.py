# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the verbs share: kinds of options, and errors as one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

import click

from ..errors import SoftswitchError

PROGRAM_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@contextlib.contextmanager
def errors_in_words() -> Generator[None]:
    """Turn errors of the switch into exit status 1 and a sentence."""
    try:
        yield
    except (SoftswitchError, OSError) as exc:
        raise click.ClickException(str(exc)) from exc


@contextlib.contextmanager
def writable(option: str) -> Generator[None]:
    """Turn a file or folder that cannot be made into exit status 1, and name its option."""
    try:
        yield
    except OSError as exc:
        raise click.ClickException(
            f"{option} {exc.filename}: {exc.strerror}; choose another place"
        ) from exc
