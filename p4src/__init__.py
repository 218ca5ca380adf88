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
    ProgramFilesError,
    StaleArtefactError,
)
from .freshness import Manifest, check_manifest, stale_program, stale_variant

__all__ = [
    "VARIANTS",
    "Artefacts",
    "CompilationError",
    "CompilerNotFoundError",
    "Manifest",
    "P4srcError",
    "ProgramFilesError",
    "StaleArtefactError",
    "Variant",
    "artefact_dir",
    "artefacts",
    "check_manifest",
    "program_name",
    "source_hashes",
    "sources",
    "stale_program",
    "stale_variant",
]
