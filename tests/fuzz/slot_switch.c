// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "slot_switch.h"

#include <stdlib.h>

void slot_switch_init(slot_switch_t *held, uint32_t num_workers, uint32_t num_slots, uint32_t values_per_packet) {
  *held = (slot_switch_t){num_workers, num_slots, values_per_packet, calloc(2 * num_slots, sizeof *held->copies)};
  for (uint32_t i = 0; i < 2 * num_slots; i++) held->copies[i].values = calloc(values_per_packet, sizeof(int32_t));
}

void slot_switch_close(slot_switch_t *held) {
  for (uint32_t i = 0; i < 2 * held->num_slots; i++) free(held->copies[i].values);
  free(held->copies);
}

static int32_t value_of(const uint8_t *datagram, uint32_t i) {
  return (int32_t)load32(datagram + HEADER_BYTES + VALUE_BYTES * i);
}

static void add(const slot_switch_t *held, slot_copy_t *copy, const uint8_t *datagram) {
  bool is_first = copy->num_contributors == 0, is_max = datagram[OPERATION_AT] == AGGREGATE_MAX;
  for (uint32_t i = 0; i < held->values_per_packet; i++) {
    int32_t value = value_of(datagram, i), *sum = &copy->values[i];
    if (is_first || (is_max && value > *sum)) *sum = value;
    else if (!is_max) *sum += value;
  }
  memcpy(copy->header, datagram, HEADER_BYTES);
  copy->bitmap |= load32(datagram + BITMAP_AT);
  copy->num_contributors++;
}

static void write_reply(const slot_switch_t *held, const slot_copy_t *copy, const uint8_t *header, operation_t operation,
                        uint16_t flags, uint8_t *reply) {
  memcpy(reply, header, HEADER_BYTES);
  reply[OPERATION_AT] = (uint8_t)operation;
  store16(reply + FLAGS_AT, (uint16_t)((load16(header + FLAGS_AT) & LAST) | flags));
  store32(reply + BITMAP_AT, copy->bitmap);
  store16(reply + CONTRIBUTORS_AT, (uint16_t)copy->num_contributors);
  for (uint32_t i = 0; i < held->values_per_packet; i++) {
    store32(reply + HEADER_BYTES + VALUE_BYTES * i, (uint32_t)copy->values[i]);
  }
}

reply_t slot_switch_process(slot_switch_t *held, uint32_t slot, const uint8_t *datagram, uint8_t *reply) {
  uint32_t round = load32(datagram + ROUND_AT), bit = load32(datagram + BITMAP_AT);
  slot_copy_t *copy = &held->copies[2 * slot + (round & 1)];
  if (datagram[OPERATION_AT] != AGGREGATE_ADD && datagram[OPERATION_AT] != AGGREGATE_MAX) {
    write_reply(held, copy, datagram, NOTICE, 0, reply);
    store32(reply + ROUND_AT, copy->round);
    return REPLY_TO_SENDER;
  }
  if (round < copy->round) return NO_REPLY;
  if (round > copy->round) {
    *copy = (slot_copy_t){.round = round, .values = copy->values};
  } else if (memcmp(copy->header + TENSOR_AT, datagram + TENSOR_AT, BITMAP_AT - TENSOR_AT) != 0) {
    return NO_REPLY;
  }
  if (copy->is_closed) {
    write_reply(held, copy, copy->header, RESULT, REPLAY, reply);
    return REPLY_TO_SENDER;
  }
  if (copy->bitmap & bit) return NO_REPLY;
  add(held, copy, datagram);
  if (copy->num_contributors < held->num_workers) return NO_REPLY;
  copy->is_closed = true;
  write_reply(held, copy, copy->header, RESULT, 0, reply);
  return REPLY_TO_ALL;
}
