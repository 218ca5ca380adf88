# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled libraries are hardened: read-only relocations, canaries, no code on the stack."""

from __future__ import annotations

import runpy
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
import setuptools

from switchfold.hostlib.native import library as host_library
from switchfold.softswitch.compilation import compiler, hardening, runtime_library
from switchfold.softswitch.compilation.compiler import compile_program, find_compiler
from switchfold.softswitch.compilation.runtime_library import build_runtime

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "p4src" / "build" / "switchfold_narrow" / "switchfold_narrow.json"
PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474E551, 0x6474E552
DT_NULL, DT_FLAGS, DF_BIND_NOW, PF_X = 0, 30, 8, 1


def program_headers(data: bytes) -> dict[int, tuple[int, int, int]]:
    """Return flags, offset and size of an ELF file's segments by type; 64 bits, little-endian."""
    assert data[:6] == b"\x7fELF\x02\x01"
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found: dict[int, tuple[int, int, int]] = {}
    for index in range(count):
        kind, flags, offset, _, _, length = struct.unpack_from(
            "<IIQQQQ", data, start + index * size
        )
        found[kind] = (flags, offset, length)
    return found


def dynamic_flags(data: bytes, offset: int, length: int) -> int:
    for tag, value in struct.iter_unpack("<QQ", data[offset : offset + length]):
        if tag == DT_FLAGS:
            return value
        if tag == DT_NULL:
            break
    return 0


def assert_hardened(path: Path) -> None:
    data = path.read_bytes()
    segments = program_headers(data)
    assert PT_GNU_RELRO in segments, f"{path.name} is linked without -z relro"
    _, offset, length = segments[PT_DYNAMIC]
    assert dynamic_flags(data, offset, length) & DF_BIND_NOW, f"{path.name}: without -z now"
    assert not segments[PT_GNU_STACK][0] & PF_X, f"{path.name}: its stack may hold code"
    assert b"\0__stack_chk_fail\0" in data, f"{path.name} has no stack canary"


@pytest.fixture
def plain_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """No flags but the switch's own and -Werror."""
    monkeypatch.setenv(compiler.CFLAGS_VARIABLE, "-Werror")


def test_the_host_library_is_hardened() -> None:
    assert_hardened(Path(host_library.__file__).with_name("_native.abi3.so"))


@pytest.mark.usefixtures("plain_flags")
def test_a_program_of_the_switch_is_hardened(tmp_path: Path) -> None:
    assert_hardened(compile_program(PROGRAM, cache_dir=tmp_path).library)


@pytest.mark.usefixtures("plain_flags")
@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_the_runtime_of_the_switch_is_hardened(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on the PATH")
    monkeypatch.setattr(runtime_library, "find_compiler", lambda: (found,))
    assert_hardened(build_runtime(tmp_path))


def test_an_unhardened_library_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "plain.c"
    source.write_text("int plain(void) { return 0; }\n")
    command = [
        *find_compiler(),
        "-shared",
        "-fPIC",
        "-Wl,-z,lazy",
        "-o",
        f"{source}.so",
        f"{source}",
    ]
    subprocess.run(command, check=True)
    with pytest.raises(AssertionError, match=r"plain\.c\.so"):
        assert_hardened(Path(f"{source}.so"))


@pytest.mark.parametrize("is_sanitized", [False, True])
def test_setup_uses_the_same_flags(is_sanitized: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, list[setuptools.Extension]] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **options: given.update(options))
    monkeypatch.setenv("CFLAGS", "-fsanitize=address" if is_sanitized else "")
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))
    (extension,) = given["ext_modules"]
    flags = extension.extra_compile_args
    assert tuple(extension.extra_link_args) == hardening.LINKING
    if is_sanitized:
        assert not set(hardening.HARDENING) & set(flags)
    else:
        assert tuple(flags[-len(hardening.HARDENING) :]) == hardening.HARDENING
