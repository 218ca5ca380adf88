# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""p4c makes the committed artefacts again from the sources, and its warnings are errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from switchfold import p4src
from switchfold.p4src import compile as p4_compile
from switchfold.p4src.artefacts import P4SRC, Variant


@pytest.mark.p4c
@pytest.mark.slow
@pytest.mark.parametrize("variant", p4src.VARIANTS)
def test_artefacts_come_out_of_p4c_again(variant: Variant, tmp_path: Path) -> None:
    if shutil.which(p4_compile.COMPILER) is None:
        pytest.skip(f"{p4_compile.COMPILER} is not on the PATH")
    compiler = f"{p4_compile.COMPILER} " + p4_compile.compiler_version(p4_compile.find_compiler())
    committed = p4src.artefacts(variant)
    wanted = json.loads(committed.manifest.read_text(encoding="utf-8"))["compiler"]
    if wanted != compiler:
        pytest.skip(f"artefacts were made by {wanted}, here is {compiler}")
    made = p4_compile.compile_program(variant, tmp_path)
    assert made.json.read_bytes() == committed.json.read_bytes()
    assert made.p4info.read_bytes() == committed.p4info.read_bytes()
    assert made.manifest.read_bytes() == committed.manifest.read_bytes()


@pytest.mark.p4c
def test_compile_warning_is_an_error(tmp_path: Path) -> None:
    if shutil.which(p4_compile.COMPILER) is None:
        pytest.skip(f"{p4_compile.COMPILER} is not on the PATH")
    copy = tmp_path / "p4src"
    shutil.copytree(P4SRC, copy, ignore=shutil.ignore_patterns("__pycache__"))
    constants = copy / "include" / "constants.p4"
    text = constants.read_text(encoding="utf-8")
    unused = text.replace("#endif", "const bit<8> NOBODY_NEEDS_THIS = 1;\n\n#endif")
    constants.write_text(unused, encoding="utf-8")
    with pytest.raises(p4src.CompilationError, match="NOBODY_NEEDS_THIS"):
        p4_compile.compile_program("narrow", tmp_path / "build", copy)
