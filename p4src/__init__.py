# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4 programs of Switchfold, their compiled artefacts, and how those are made."""

from .artefacts import (
    VARIANTS,
    Artefacts,
    Variant,
    artefact_dir,
    artefacts,
    program_name,
    source_hashes,
    sources,
)
from .errors import (
    CompilationError,
    CompilerNotFoundError,
    P4srcError,
    StaleArtefactError,
)

__all__ = [
    "VARIANTS",
    "Artefacts",
    "CompilationError",
    "CompilerNotFoundError",
    "P4srcError",
    "StaleArtefactError",
    "Variant",
    "artefact_dir",
    "artefacts",
    "program_name",
    "source_hashes",
    "sources",
]
