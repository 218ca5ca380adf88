# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The file of measured tolerances: by model, what `switchfold tolerance` found that training bears.

JSON: {"format": "switchfold tolerance", "version": 1, "models": {NAME: {"loss": ..., ...}}}.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from .errors import ConfigurationError, ToleranceFileError
from .loss_tolerance import LossTolerance

FORMAT: Final = "switchfold tolerance"
VERSION: Final = 1
_MAKE: Final = "`switchfold tolerance --out FILE` writes such files"


def load_tolerance(path: Path | str, model: str) -> LossTolerance:
    """Return what the training of a model bears, by both criteria; no loss if it bears none.

    Raises ToleranceFileError that names the file, and the models that it has.
    """
    models = read_models(Path(path))
    if model not in models:
        known = ", ".join(sorted(models)) or "none"
        raise ToleranceFileError(
            f"{path} has no model {model!r} (known: {known}); measure it with `switchfold"
            f" tolerance --out {path}`"
        )
    return tolerance_of(models[model], f"model {model!r} in {path}")


def tolerance_of(entry: Mapping[str, Any], where: str) -> LossTolerance:
    """Return the tolerance of a model's entry; ToleranceFileError says what is wrong, and where."""
    loss, floor = entry.get("loss"), entry.get("worker_floor")
    if not _is_number(loss) or not (floor is None or _is_number(floor)):
        raise ToleranceFileError(
            f"{where}: loss is {loss!r} and worker_floor is {floor!r}; they are shares, and only"
            f" worker_floor may be null. {_MAKE}"
        )
    try:
        return LossTolerance(loss=cast("float", loss), worker_floor=floor)
    except ConfigurationError as exc:
        raise ToleranceFileError(f"{where}: {exc}") from exc


def read_models(path: Path) -> dict[str, dict[str, Any]]:
    """Return all entries of a file by model; ToleranceFileError if it cannot be read."""
    try:
        read: object = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as exc:
        raise ToleranceFileError(f"{path} is missing; {_MAKE}") from exc
    except (OSError, ValueError) as exc:
        raise ToleranceFileError(f"cannot read the tolerances in {path}: {exc}. {_MAKE}") from exc
    fields = cast("dict[str, object]", read) if isinstance(read, dict) else {}
    if fields.get("format") != FORMAT:
        raise ToleranceFileError(f"{path} is not a file of tolerances; {_MAKE}")
    if fields.get("version") != VERSION:
        raise ToleranceFileError(
            f"{path} has version {fields.get('version')!r} of the file of tolerances; this release"
            f" reads version {VERSION}: measure again, or use the release that wrote it"
        )
    models = fields.get("models")
    if not isinstance(models, dict):
        raise ToleranceFileError(f"{path}: models is no object of entries by name; {_MAKE}")
    entries = cast("dict[str, object]", models)
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise ToleranceFileError(f"model {name!r} in {path} is no object of fields; {_MAKE}")
    return cast("dict[str, dict[str, Any]]", entries)


def store_model(path: Path, model: str, entry: Mapping[str, Any]) -> None:
    """Put a model's entry into a file, in place of its earlier one; others stay.

    The file is as before until it is whole. Raises ToleranceFileError if what is there is not such
    a file, or if it cannot be written.
    """
    tolerance_of(entry, f"model {model!r}")
    models = read_models(path) if path.exists() else {}
    models[model] = dict(entry)
    whole = {"format": FORMAT, "version": VERSION, "models": dict(sorted(models.items()))}
    text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    except OSError as exc:
        with contextlib.suppress(OSError):
            part.unlink()
        raise ToleranceFileError(f"cannot write {path}: {exc}; give another --out") from exc


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
