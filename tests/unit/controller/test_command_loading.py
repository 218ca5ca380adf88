# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commands are loaded without garbage collections, which go on before a command does its work."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold.controller.__main__ import run
from switchfold.softswitch.commands.loading import collect_again

PROBE = """
import gc, importlib, sys
package, status, *sys.argv[1:] = sys.argv[1:]
module = importlib.import_module(f"switchfold.{package}.__main__")
try:
    module.main()
except SystemExit as end:
    assert end.code == int(status), end.code
print("collects" if gc.isenabled() else "does not collect")
print("without what is loaded" if gc.get_freeze_count() > len(sys.modules) else "with all of it")
"""


@pytest.mark.parametrize(
    "words",
    [
        ("controller", "0", "certs", "--help"),
        ("controller", "2", "job", "--unknown"),
        ("softswitch", "0", "show", "--help"),
        ("softswitch", "1", "run", "--grpc", "127.0.0.1:0", "--credentials", "{missing}"),
    ],
    ids=" ".join,
)
def test_process_collects_again_once_a_command_is_loaded(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    arguments = [word.format(missing=tmp_path / "missing") for word in words]
    ended = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=False
    )
    said = ended.stdout.splitlines()[-2:]
    assert said == ["collects", "without what is loaded"], ended.stderr


def test_caller_keeps_its_own_collection(capsys: pytest.CaptureFixture[str]) -> None:
    frozen = gc.get_freeze_count()
    assert run(["certs", "--help"]) == 0
    collect_again()
    assert "certificates" in capsys.readouterr().out
    assert gc.isenabled()
    assert gc.get_freeze_count() <= frozen
