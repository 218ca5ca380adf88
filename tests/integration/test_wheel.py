# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel: one package and its C library, in a new environment and beside foreign packages."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from built_wheel import build, copy_sources, made, wheel

__all__ = ["made", "wheel"]

pytestmark = pytest.mark.timeout(1200)  # the first test waits for compilers
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

SUM = """
import sys
from pathlib import Path
import numpy as np
import switchfold
from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.hostlib.config import join_from_environment
if len(sys.argv) > 1:
    with join_from_environment() as session:
        mine = np.full(10_000, session.view.worker_id + 1, np.float32)
        total = session.allreduce(mine).result()
        assert (total == total[0]).all()
        environment = Path(switchfold.__file__).parents[4]
        print(f"worker {session.view.worker_id}: {total[0]:g} {environment}")
else:
    with Testbed(single_switch(2), mode="udp", variant="narrow") as testbed:
        command = [sys.executable, __file__, "worker"]
        for done in testbed.run_workers(command, timeout_s=240):
            print(done.output, end="")
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the package is built from, without anything built."""
    folder = tmp_path_factory.mktemp("source")
    copy_sources(folder)
    return folder


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was installed."""
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def project() -> dict[str, Any]:
    """Return the project table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


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
    made: Path, wheel: Path, installed: Path
) -> None:
    native = installed / "switchfold" / "hostlib" / "native"
    assert sorted(path.name for path in native.iterdir() if path.suffix != ".py") == [
        "_native.abi3.so"
    ]
    # One build is for every Python of this platform.
    assert f"-abi3-{sysconfig.get_platform().replace('-', '_')}" in wheel.name
    (sdist,) = made.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        listed = {name.partition("/")[2] for name in archive.getnames()}
    sources = committed("hostlib", "native/*.c", "native/*.h")
    assert {f"src/switchfold/{name}" for name in sources} <= listed


def test_the_wheel_is_tagged_for_its_interpreters_and_platform(wheel: Path) -> None:
    version = project()["version"]
    platform = sysconfig.get_platform().replace("-", "_")
    assert wheel.name == f"switchfold-{version}-cp311-abi3-{platform}.whl"
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"switchfold-{version}.dist-info/WHEEL").decode()
    assert "Root-Is-Purelib: false\n" in text
    assert f"Tag: cp311-abi3-{platform}\n" in text
    # The oldest Python that the tag names is the oldest that the package takes.
    assert project()["requires-python"] == ">=3.11"


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
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment outside the checkout, into which pip has installed the wheel.

    What the wheel depends on is that of this environment, behind the new one's own packages: to
    install it again would take longer than all other tests of the wheel.
    """
    folder = tmp_path_factory.mktemp("bare")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--without-pip", str(folder)],
        [*pip, "install", *options, str(wheel)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
    # Paths in a .pth file come last, and .pth files there do not count: no editable installation.
    dependencies = sysconfig.get_path("purelib")
    (site_packages(folder) / "zz_dependencies.pth").write_text(dependencies + "\n", "utf-8")
    return folder


def site_packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3.*/site-packages")
    return folder


def run_bare(environment: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of an environment in its own folder, where no checkout is."""
    return subprocess.run(
        [str(environment / "bin" / words[0]), *words[1:]],
        cwd=environment,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", str(environment))},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_nothing_but_the_package_is_at_the_top(bare: Path) -> None:
    names = {path.name for path in site_packages(bare).iterdir()}
    assert names == {
        "switchfold",
        f"switchfold-{project()['version']}.dist-info",
        "zz_dependencies.pth",
    }


@pytest.mark.parametrize("command", sorted(project()["scripts"]))
def test_commands_start_in_a_new_environment(bare: Path, command: str) -> None:
    done = run_bare(bare, command, "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{command}, version {project()['version']}\n"


def test_a_switch_sums_over_loopback_in_a_new_environment(bare: Path) -> None:
    # Controller, softswitch and two workers are processes, and links are UDP ports of loopback.
    (bare / "sum.py").write_text(SUM, encoding="ascii")
    done = run_bare(bare, "python", "sum.py")
    assert done.returncode == 0, done.stdout + done.stderr
    workers = sorted(line for line in done.stdout.splitlines() if line.startswith("worker"))
    assert workers == [f"worker {n}: 3 {bare}" for n in (0, 1)]
