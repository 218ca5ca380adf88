// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "damage.h"

#include <string.h>

#include "slots/header.h"
#include "random.h"

typedef struct {
  uint32_t at, bytes;
} field_t;

static const field_t fields[] = {
    {VERSION_AT, 1},    {OPERATION_AT, 1}, {FLAGS_AT, 2},  {TREE_AT, 2},         {CHILD_AT, 1},
    {GENERATION_AT, 4}, {SLOT_AT, 4},      {ROUND_AT, 4},  {TENSOR_AT, 4},       {CHUNK_AT, 4},
    {START_AT, 4},      {END_AT, 4},       {BITMAP_AT, 4}, {CONTRIBUTORS_AT, 2}, {EXPONENT_AT, 1},
};

// A number near the old one, at an end of the range, or any.
static uint64_t other_number(uint64_t old) {
  switch (draw(5)) {
  case 0: return old + 1;
  case 1: return old - 1;
  case 2: return 0;
  case 3: return UINT64_MAX >> draw(2);
  default: return draw64();
  }
}

static void change_field(packet_t *packet, uint32_t header_at) {
  const field_t *field = &fields[draw(sizeof fields / sizeof *fields)];
  uint32_t at = header_at + field->at;
  if (at + field->bytes > packet->bytes) return;
  uint64_t number = 0;
  for (uint32_t i = 0; i < field->bytes; i++) number = number << 8 | packet->data[at + i];
  number = field->at == OPERATION_AT ? draw(9) : other_number(number);
  for (uint32_t i = 0; i < field->bytes; i++) packet->data[at + i] = (uint8_t)(number >> 8 * (field->bytes - 1 - i));
}

static void grow(packet_t *packet) {
  uint32_t more = 1 + draw(MOST_GROWTH);
  if (packet->bytes + more > MOST_BYTES) return;
  for (uint32_t i = 0; i < more; i++) packet->data[packet->bytes++] = (uint8_t)draw(256);
}

static void splice(packet_t *packet, const packet_t *other) {
  uint32_t least = other->bytes < packet->bytes ? other->bytes : packet->bytes;
  if (least == 0) return;
  uint32_t bytes = 1 + draw(least);
  memcpy(packet->data + draw(packet->bytes - bytes + 1), other->data + draw(other->bytes - bytes + 1), bytes);
}

static void damage_once(packet_t *packet, uint32_t header_at, const packet_t *other) {
  if (packet->bytes == 0) {
    grow(packet);
    return;
  }
  switch (draw(9)) {
  case 0: packet->data[draw(packet->bytes)] ^= (uint8_t)(1u << draw(8)); return;
  case 1: packet->data[draw(packet->bytes)] = (uint8_t)draw(256); return;
  case 2: packet->bytes = draw(packet->bytes); return;
  case 3: grow(packet); return;
  case 4: splice(packet, other); return;
  default: change_field(packet, header_at);
  }
}

void damage(packet_t *packet, uint32_t header_at, const packet_t *other) {
  for (uint32_t times = between(1, 3); times > 0; times--) damage_once(packet, header_at, other);
}
