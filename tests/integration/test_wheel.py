# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel: one import package and its C library, also beside foreign packages of like names."""

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
from switchfold.hostlib.native.library import library
assert p4src.artefacts("narrow").json.is_file()
assert Path(switchfold.__file__).is_relative_to(sys.argv[1]), switchfold.__file__
assert Path(library._name).is_relative_to(sys.argv[1]), library._name
try:
    import hostlib
except ImportError as error:
    assert "not Switchfold" in str(error)
else:
    raise AssertionError("the folder beside the script was not imported")
assert run(["scheme", "best", "--help"]) == 0
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the package is built from, without anything built."""
    folder = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns(
        ".*", "__pycache__", "*.egg-info", "*.so", "build", "report", "tests"
    )
    for name in ("src", "bmv2_topos", "controller", "hostlib", "softswitch"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    shutil.copytree(ROOT / "p4src", folder / "p4src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(source: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Let pip build the wheel of a copy into a folder."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(folder), str(source)]
    return subprocess.run(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    done = build(source, folder)
    assert done.returncode == 0, done.stdout
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was installed."""
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def committed(part: str, *patterns: str) -> set[str]:
    return {
        f"{part}/{path.relative_to(ROOT / part)}"
        for pattern in patterns
        for path in (ROOT / part).rglob(pattern)
    }


def test_one_package_is_installed(installed: Path) -> None:
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {
        "switchfold"
    }
    expected = committed("softswitch", "*.c", "*.h")  # compiled when a program is loaded
    for part in ("bmv2_topos", "controller", "hostlib", "p4src", "softswitch"):
        expected |= committed(part, "*.py", "*.proto", "py.typed", "build/**/*.json")
    package = installed / "switchfold"
    made = {str(path.relative_to(package)) for path in package.rglob("*")}
    assert not expected - made


def test_the_c_library_is_in_the_wheel_and_its_sources_in_the_sdist(
    wheel: Path, installed: Path, source: Path
) -> None:
    native = installed / "switchfold" / "hostlib" / "native"
    assert sorted(path.name for path in native.iterdir() if path.suffix != ".py") == [
        "_native.abi3.so"
    ]
    # One build is for every Python of this platform.
    assert f"-abi3-{sysconfig.get_platform().replace('-', '_')}" in wheel.name
    listed = (source / "src" / "switchfold.egg-info" / "SOURCES.txt").read_text(encoding="utf-8")
    sources = committed("hostlib", "native/*.c", "native/*.h")
    assert {f"src/switchfold/{name}" for name in sources} <= set(listed.splitlines())


def test_no_compiler_for_the_package(source: Path, tmp_path: Path) -> None:
    done = build(source, tmp_path / "wheels", PATH=str(tmp_path), CC="cc")
    assert done.returncode != 0
    assert "error: no C compiler: looked for cc, gcc, clang on the PATH" in done.stdout
    assert "apt-get install gcc libc6-dev" in done.stdout


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
