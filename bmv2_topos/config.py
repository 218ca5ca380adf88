# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The environment of a testbed: where it keeps its records, and where the package is."""

from __future__ import annotations

import os
from pathlib import Path

RUN_DIRECTORY_VARIABLE = "SWITCHFOLD_RUN_DIRECTORY"
"""Set in every process of a testbed to the directory that records it."""
OPERATOR_CREDENTIALS = "certificates/issued/operator"
"""Folder, in a testbed's own, with the certificate of its operator."""
SWITCH_OPERATOR_CREDENTIALS = "switch-certificates/issued/operator"
"""The same, for calls of P4Runtime."""
OPERATOR_CREDENTIAL_FILE = "operator.token"
"""Name of the file, beside the controller's socket, with the token that opens the operator API."""


def records_directory() -> Path:
    """Return the directory of this user's testbed records; root's is under /run."""
    if os.geteuid() == 0:
        return Path("/run/switchfold")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "switchfold"
    return Path(f"/tmp/switchfold-{os.geteuid()}")  # noqa: S108 - made with mode 0700 and checked


def source_root() -> Path:
    """Return the folder that holds the package `switchfold`."""
    # Not resolved: in a checkout this folder is a link in src/switchfold.
    return Path(__file__).absolute().parents[2]


def child_environment(run_directory: Path) -> dict[str, str]:
    """Return a testbed process's environment: ours, with the package's path and the testbed's mark.

    The shell's SWITCHFOLD_PLACES is left out: it is for torchrun and may belong to another testbed.
    """
    environment = dict(os.environ)
    environment.pop("SWITCHFOLD_PLACES", None)
    paths = [str(source_root()), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment["PYTHONUNBUFFERED"] = "1"
    environment[RUN_DIRECTORY_VARIABLE] = str(run_directory)
    return environment
