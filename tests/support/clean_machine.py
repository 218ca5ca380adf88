# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A machine on which nobody has installed or set anything, and a shell on it; needs root.

It has mounts, a network (with a loopback interface alone) and processes of its own, which end with
it, an empty /run, and a user with an empty home. Programs and compilers are those of this machine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from local_index import write_pip_configuration
from unit_runner import CACHE

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ALONE: Final = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
_BEGIN: Final = "mount -t tmpfs tmpfs /run && ip link set lo up && exec sh"
_END: Final = "=== this was all of it:"


def write_python(folder: Path) -> None:
    """Write a `python3` that is outside every environment, of the tests' version."""
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (folder / "python3").write_text(f'#!/bin/sh\nexec {base} "$@"\n', "utf-8")
    (folder / "python3").chmod(0o755)


class CleanMachine:
    """Types commands into one shell, as a user does, who sees what they print."""

    def __init__(self, folder: Path, index: Path) -> None:
        """`folder` is empty; `index`: where pip looks for packages."""
        self.home = folder / "home"
        self.compiled = self.home / ".cache" / "softswitch"
        """Where softswitch keeps the P4 programs that it has compiled; not there yet."""
        self._programs = folder / "bin"
        for made in (self.home, self._programs):
            made.mkdir()
        write_python(self._programs)
        write_pip_configuration(self.home, index)

    def share_compiled(self) -> None:
        """Let P4 programs that the tests' machine has compiled before not be compiled again."""
        (CACHE / "softswitch").mkdir(parents=True, exist_ok=True)
        self.compiled.parent.mkdir()
        self.compiled.symlink_to(CACHE / "softswitch")

    def __enter__(self) -> Self:
        self._shell = subprocess.Popen(
            ["unshare", *_ALONE, "sh", "-c", _BEGIN],
            cwd=self.home,
            env={
                "PATH": f"{self._programs}:{SYSTEM_PATH}",
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        return self

    def type(self, command: str) -> str:
        """Return what a command prints, which must not fail."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null; printf '\\n{_END} %s\\n' $?\n")
        self._shell.stdin.flush()
        said: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(_END):
                assert line == f"{_END} 0\n", f"{command}: {line}{''.join(said)}"
                return "".join(said)
            said.append(line)
        raise AssertionError(f"{command} ended the shell:\n{''.join(said)}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._shell.kill()  # and with it the first process of its machine, and so all
        self._shell.communicate()
