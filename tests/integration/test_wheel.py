# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel: one import package, which works beside foreign packages of its parts' names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = "raise ImportError('this is not Switchfold')\n"
USE = """
import sys
from pathlib import Path
import switchfold
from switchfold import Session, SessionOptions, p4src
from switchfold.controller.__main__ import run
assert p4src.artefacts("narrow").json.is_file()
assert Path(switchfold.__file__).is_relative_to(sys.argv[1]), switchfold.__file__
try:
    import hostlib
except ImportError as error:
    assert "not Switchfold" in str(error)
else:
    raise AssertionError("the folder beside the script was not imported")
assert run(["scheme", "best", "--help"]) == 0
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel of this tree was installed."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "report", "tests")
    for name in ("src", "bmv2_topos", "controller", "hostlib", "softswitch"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    shutil.copytree(ROOT / "p4src", source / "p4src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    subprocess.run([*build, str(source)], check=True, timeout=240)
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def test_one_package_is_installed(installed: Path) -> None:
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {
        "switchfold"
    }
    committed = {
        f"{part}/{path.relative_to(ROOT / part)}"
        for part in ("bmv2_topos", "controller", "hostlib", "p4src", "softswitch")
        for pattern in ("*.py", "*.proto", "*.c", "*.h", "py.typed", "build/**/*.json")
        for path in (ROOT / part).rglob(pattern)
    }
    package = installed / "switchfold"
    made = {str(path.relative_to(package)) for path in package.rglob("*")}
    assert not committed - made


def test_foreign_packages_with_names_of_parts_do_no_harm(installed: Path, tmp_path: Path) -> None:
    for name in ("hostlib", "controller", "softswitch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(FOREIGN, encoding="ascii")
    script = tmp_path / "use.py"
    script.write_text(USE, encoding="ascii")
    # The wheel comes before this tree, but after the folder of the script.
    libraries = sysconfig.get_path("purelib")
    done = subprocess.run(
        [sys.executable, str(script), str(installed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), libraries])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
