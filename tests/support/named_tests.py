# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that a page names as "file::function", below tests/."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


@functools.cache
def functions_of(file: str) -> frozenset[str]:
    """Return the test functions at the top of a module below tests/."""
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def is_test(name: str) -> bool:
    """Whether "file::function" names a test."""
    file, separator, function = name.partition("::")
    return (
        bool(separator)
        and function.startswith("test_")
        and Path(file).name.startswith("test_")
        and (TESTS / file).is_file()
        and function in functions_of(file)
    )
