# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A folder in which pip finds what the package needs: no registry is asked, nothing is copied.

Each wheel has the name, version and commands of a package of this environment, and a .pth file that
leads there. pip resolves and installs it as any other. Paths in .pth files come last, and .pth
files there do not count: this environment's Switchfold is not found before a new environment's own.
"""

from __future__ import annotations

import re
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
OWN = "switchfold"


def make_index(folder: Path, *extras: str) -> None:
    """Write a wheel for each package that Switchfold with these extras, and its build, need."""
    for name in sorted(_needed(*extras)):
        _write_wheel(folder, metadata.distribution(name))


def write_pip_configuration(home: Path, index: Path) -> None:
    """Have the pip of a user look into this folder alone."""
    file = home / ".config" / "pip" / "pip.conf"
    file.parent.mkdir(parents=True)
    file.write_text(
        f"[global]\nno-index = yes\nfind-links = {index}\ndisable-pip-version-check = yes\n",
        "utf-8",
    )


def _needed(*extras: str) -> Iterator[str]:
    content: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = content["project"]
    optional = project["optional-dependencies"]
    listed = [*content["build-system"]["requires"], *project["dependencies"]]
    for extra in extras:
        listed += optional[extra]
    names = {Requirement(each).name for each in listed}
    yield from names - {OWN}


def _write_wheel(folder: Path, package: metadata.Distribution) -> None:
    name = re.sub(r"[-_.]+", "_", package.name).lower()
    described = f"{name}-{package.version}"
    head = package.read_text("METADATA")
    assert head is not None
    files = {
        f"{name}.pth": sysconfig.get_path("purelib") + "\n",
        f"{described}.dist-info/METADATA": re.sub(r"^Requires-Dist: .*\n", "", head, flags=re.M),
        f"{described}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
        f"{described}.dist-info/entry_points.txt": package.read_text("entry_points.txt") or "",
    }
    record = f"{described}.dist-info/RECORD"
    files[record] = "".join(f"{path},,\n" for path in (*files, record))
    with zipfile.ZipFile(folder / f"{described}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
