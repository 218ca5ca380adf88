# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Field lists, kept through clone, resubmit and recirculate, and learn lists of digests."""

from typing import Any

from ..program.model import Json
from .context import STANDARD, Context, Refusal
from .headers import Storage
from .metadata import requests

_OVERWRITTEN = {(STANDARD, "instance_type"), (STANDARD, "packet_length")}
"""Fields that the switch sets behind a field list."""


class FieldListWriter:
    """Writes the functions on field lists and learn lists."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.lists = {
            item["id"]: [
                storage
                for storage in self._storages(item, "field list")
                if (storage.header.name, storage.field.name) not in _OVERWRITTEN
            ]
            for item in context.program.json.get("field_lists", [])
        }

    def emit(self) -> str:
        """All functions."""
        return "\n".join(
            [*self._reset(), *self._copy(), *self._save(), *self._load(), *self._digest()]
        )

    def _storages(self, item: Json, what: str) -> list[Storage]:
        found: list[Storage] = []
        for element in item["elements"]:
            if element["type"] != "field":
                continue
            value: list[Any] = element["value"]
            storage = self.context.layout.fields.get((value[0], value[1]))
            with self.context.refusals(item.get("name", what)):
                if storage is None:
                    raise Refusal(
                        f"{what} with {value[0]}.{value[1]}",
                        "it is no field of a header instance",
                        "Copy its value to a metadata field and put that into the list",
                    )
                found.append(storage)
        return found

    def _reference(self, storage: Storage, phv: str) -> str:
        """C lvalue of a field in the phv of this name."""
        return phv + storage.reference.removeprefix("p")

    def _reset(self) -> list[str]:
        layout = self.context.layout
        names = [layout.member(header.name) for header in layout.headers if header.is_metadata]
        return [
            "P4_UNUSED static void p4_reset_metadata(phv_t *p) {",
            *(f"memset(&{name}, 0, sizeof {name});" for name in names),
            *(f"p->{name} = 0;" for name in requests(self.context)),
            "(void)p;",
            "}",
            "",
        ]

    def _copy(self) -> list[str]:
        text = [
            "P4_UNUSED static void p4_copy_fields(phv_t *to, const phv_t *from, uint32_t list) {",
            "(void)to; (void)from;",
            "switch (list) {",
        ]
        for number, storages in self.lists.items():
            text.append(f"case {number}:")
            for storage in storages:
                to, origin = self._reference(storage, "to"), self._reference(storage, "from")
                text.append(f"memcpy(&{to}, &{origin}, sizeof {to});")
            text.append("break;")
        return [*text, "default: break;", "}", "}", ""]

    def _sizes(self, storages: list[Storage]) -> str:
        sizes = [f"sizeof {self._reference(storage, 'p')}" for storage in storages]
        return " + ".join(sizes) or "0"

    def _save(self) -> list[str]:
        text = [
            "P4_UNUSED static int p4_save_fields(const phv_t *p, uint32_t list, uint8_t *out,",
            "                                    uint32_t capacity) {",
            "uint32_t at = 0;",
            "(void)p; (void)out; (void)capacity;",
            "switch (list) {",
        ]
        for number, storages in self.lists.items():
            text.append(f"case {number}:")
            if storages:
                text.append(f"if ({self._sizes(storages)} > capacity) return P_FULL;")
            for storage in storages:
                place = self._reference(storage, "p")
                text.append(f"memcpy(out + at, &{place}, sizeof {place}); at += sizeof {place};")
            text.append("break;")
        return [*text, "default: break;", "}", "return (int)at;", "}", ""]

    def _load(self) -> list[str]:
        text = [
            "P4_UNUSED static int p4_load_fields(phv_t *p, uint32_t list, const uint8_t *from,",
            "                                    uint32_t bytes) {",
            "(void)p; (void)from; (void)bytes;",
            "switch (list) {",
        ]
        for number, storages in self.lists.items():
            text.append(f"case {number}:")
            if storages:
                text.append(f"if ({self._sizes(storages)} != bytes) return P_BAD_ARGUMENT;")
            for storage in storages:
                place = self._reference(storage, "p")
                text.append(f"memcpy(&{place}, from, sizeof {place}); from += sizeof {place};")
            text.append("break;")
        return [*text, "default: break;", "}", "return P_OK;", "}", ""]

    def _digest(self) -> list[str]:
        text = [
            "P4_UNUSED static int p4_digest(const phv_t *p, uint32_t list, uint8_t *out,",
            "                               uint32_t capacity) {",
            "(void)p; (void)out; (void)capacity;",
            "switch (list) {",
        ]
        for item in self.context.program.json.get("learn_lists", []):
            storages = self._storages(item, "learn list")
            total = sum((storage.field.width + 7) // 8 for storage in storages)
            text.append(f"case {item['id']}:")
            text.append(f"if ({total} > capacity) return P_FULL;")
            at = 0
            for storage in storages:
                width = storage.field.width
                size = (width + 7) // 8
                place = self._reference(storage, "p")
                if width > 64:
                    text.append(f"memcpy(out + {at}, {place}, {size});")
                else:
                    value = f"(uint64_t){place} & low_mask({width})"
                    text.append(f"store_be(out + {at}, {size}, {value});")
                at += size
            text.append(f"return {total};")
        return [*text, "default: return P_NOT_FOUND;", "}", "}", ""]
