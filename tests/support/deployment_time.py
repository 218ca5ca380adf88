# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures docs/deployment.md from machines without anything of ours to a training; needs root.

python -m deployment_time [--torch torch==2.13.0]

It types the page's commands as test_user_paths.py does. But pip is the real one: it installs a
wheel that `python -m build` has made, and what that needs, from where this machine's pip looks for
packages. Each of the four machines has an environment of its own, with empty caches of pip and of
compiled switches. Networks, sudo, scp and systemctl are the tests' (plain_lan.py); commands that
four real machines run at the same time run here one after another, but for the training. In the
end it verifies a sum, equal weights, and that a switch compiled meanwhile made the sum.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from built_wheel import build, copy_sources
from deployed_lan import (
    HERE,
    HOSTS,
    check_training,
    deploy,
    install_command,
    run_on_all,
    training_command,
    write_training,
)
from plain_lan import ALONE, PlainLan
from switchfold.controller.cli.demo.machine_facts import machine_facts

LIMIT_S: Final = 3600.0
"""Of one command, on a machine that has much else to do."""
KEPT_IN_OPT: Final = """\
for kept in /opt/*/; do
  name=$(basename "$kept")
  test "$name" = '*' -o "$name" = switchfold && continue
  mkdir "$INSTALLED/$name" && mount --bind "$kept" "$INSTALLED/$name" || exit
done
"""
"""Wheels that this machine's pip is told to look for may be there."""
PIP_VARIABLES: Final = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_")


class MeasuredLan(PlainLan):
    """Prints the seconds of each command."""

    def __init__(self, folder: Path, installed: Path) -> None:
        super().__init__(folder, (HERE, *HOSTS), installed=installed, has_own_disks=True)
        self.took_s: list[float] = []

    @contextmanager
    def measure(self, where: str, command: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self.took_s.append(time.monotonic() - begin)
        print(f"{self.took_s[-1]:7.1f} s  {where:12}  {command}", flush=True)

    def run(self, address: str, command: str, timeout_s: float = LIMIT_S) -> str:
        with self.measure(address, command):
            return super().run(address, command, timeout_s)

    def install(self, address: str, command: str) -> None:
        """Run a command on a machine's disks, but in the network of this machine."""
        variables = {
            name: value
            for name, value in os.environ.items()
            if name.upper().startswith(PIP_VARIABLES)
        }
        with self.measure(address, command):
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c", KEPT_IN_OPT + ALONE, "sh", command],
                cwd=self.home(address),
                env=variables | self.variables(address),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
        assert done.returncode == 0, done.stdout


def make_wheel(lan: MeasuredLan, work: Path) -> Path:
    """Return the wheel of a copy of this tree."""
    copy_sources(work / "checkout")
    with lan.measure("a checkout", "python -m build"):
        done = build(work / "checkout", work / "dist", is_isolated=True)
    assert done.returncode == 0, done.stdout
    (wheel,) = (work / "dist").glob("*.whl")
    return wheel


def measure(torch: str) -> None:
    # Paths of sockets are short.
    folder, work = (Path(tempfile.mkdtemp(prefix="sf-")) for _ in range(2))
    installed = work / "opt"
    installed.mkdir()
    try:
        with MeasuredLan(folder, installed) as lan:
            wheel = make_wheel(lan, work)
            for_hosts = install_command().replace("[controller]", "[torch]")
            for address in (HERE, *HOSTS):
                shutil.copy(wheel, lan.home(address))
                command = install_command() if address == HERE else f"{for_hosts} {torch}"
                lan.install(address, command)
            installed_s = lan.took_s[1:]
            deploy(lan)
            write_training(lan)
            command = training_command()
            with lan.measure("each host", command):
                said = run_on_all(lan, command)
            whole_s = sum(lan.took_s)
            check_training(lan, said)
            compiled = lan.home(HERE) / ".cache" / "softswitch"
            assert any(compiled.glob("switchfold_*.so")), "the switch was not compiled here"
    finally:
        shutil.rmtree(work)
    at_once_s = whole_s - sum(installed_s) + max(installed_s)
    print(f"{whole_s:7.1f} s  in all, to the end of a training whose sum is right")
    print(f"{at_once_s:7.1f} s  if four machines had installed at the same time, as fast as here")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch", default="torch", help="which PyTorch the hosts install")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("this needs root: it makes network namespaces and mounts")
    print(", ".join(f"{name} {value}" for name, value in machine_facts().items()), flush=True)
    measure(options.torch)


if __name__ == "__main__":
    main()
