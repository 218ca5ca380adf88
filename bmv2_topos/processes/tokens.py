# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tokens of a testbed: its controller's, in files that only their owner can read, and of jobs."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from ..config import OPERATOR_CREDENTIAL_FILE

_WORKER_CREDENTIAL_FILE: Final = "worker.token"
_TOKEN_BYTES: Final = 16


def draw_tokens(run_directory: Path) -> None:
    """Write tokens for the workers and operators of a new testbed."""
    for name in (_WORKER_CREDENTIAL_FILE, OPERATOR_CREDENTIAL_FILE):
        descriptor = os.open(run_directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(_TOKEN_BYTES) + "\n")


def job_environment() -> dict[str, str]:
    """Return the variable with a new token, for the workers and parameter servers of one job."""
    return {"SWITCHFOLD_JOB_TOKEN": secrets.token_hex(_TOKEN_BYTES)}


def worker_token(run_directory: Path) -> str:
    """Return the workers' token, "" if none was drawn."""
    return _read(run_directory / _WORKER_CREDENTIAL_FILE)


def controller_environment(run_directory: Path) -> dict[str, str]:
    """Return the variables with the controller's tokens; they replace those of the shell."""
    return {
        "SWITCHFOLD_TOKEN": worker_token(run_directory),
        "SWITCHFOLD_OPERATOR_TOKEN": _read(run_directory / OPERATOR_CREDENTIAL_FILE),
        "SWITCHFOLD_READ_ONLY_TOKEN": "",
    }


def _read(path: Path) -> str:
    return path.read_text("ascii").strip() if path.exists() else ""
