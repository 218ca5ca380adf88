// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "block_receiver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void block_receiver_init(block_receiver_t *receiver, const members_t *members, uint32_t values_per_packet) {
  *receiver = (block_receiver_t){.members = *members,
                                 .num_others = members->num_members - 1,
                                 .values_per_packet = values_per_packet,
                                 .due_since_s = INFINITY,
                                 .told_s = -INFINITY};
}

void block_receiver_close(block_receiver_t *receiver) { free(receiver->ring); }

static uint32_t member_at(const block_receiver_t *receiver, uint32_t place) {
  return place + (place >= receiver->members.own);
}

static uint32_t payload_bytes(const block_receiver_t *receiver) { return VALUE_BYTES * receiver->values_per_packet; }

static uint8_t *waiting_at(const block_receiver_t *receiver, uint32_t place, uint32_t slot) {
  return receiver->ring + ((size_t)place * BLOCK_WINDOW + slot) * (HEADER_BYTES + payload_bytes(receiver));
}

static void note_due(block_receiver_t *receiver, uint32_t place, double now_s) {
  receiver->sequences[place].is_due = true;
  if (isinf(receiver->due_since_s)) receiver->due_since_s = now_s;
}

// Whether a datagram is a chunk of this allgather on the sender's side as well.
static bool is_same(const block_receiver_t *receiver, const allgather_t *allgather, uint32_t chunk, const uint8_t *datagram) {
  uint64_t end = ((uint64_t)chunk + 1) * receiver->values_per_packet;
  if (end > allgather->num_words) end = allgather->num_words;
  return load32(datagram + TENSOR_AT) == allgather->tensor_id && load32(datagram + CHUNK_AT) == chunk &&
         load32(datagram + END_AT) == end && datagram[SIGNATURE_AT] == allgather->signature;
}

static void complete(block_receiver_t *receiver, allgather_t *allgather, double now_s) {
  allgather->last_result_s = now_s;
  allgather->is_complete = true;
  receiver->has_finished = receiver->has_finished || allgather->is_sent;
  if (receiver->newest == allgather) receiver->newest = NULL;
}

// Write the chunk that is next in sequence into its result. Returns false if it is of another tensor.
static bool write_next(block_receiver_t *receiver, uint32_t place, const uint8_t *datagram, double now_s) {
  sequence_t *sequence = &receiver->sequences[place];
  allgather_t *allgather = sequence->allgather;
  uint32_t chunk = (uint32_t)(sequence->taken - allgather->start), bytes = payload_bytes(receiver);
  if (!is_same(receiver, allgather, chunk, datagram)) {
    if (!receiver->mismatch.is_there) {
      receiver->mismatch = (mismatch_t){true, receiver->members.ids[member_at(receiver, place)], allgather->tensor_id,
                                        load32(datagram + TENSOR_AT)};
    }
    return false;
  }
  size_t row = (size_t)member_at(receiver, place) * allgather->num_chunks + chunk;
  memcpy(allgather->blocks + row * bytes, datagram + HEADER_BYTES, bytes);
  sequence->taken++;
  if (--allgather->left[place] == 0) {
    sequence->allgather = allgather->to_take;
    if (--allgather->num_incomplete == 0) complete(receiver, allgather, now_s);
  }
  return true;
}

// Write chunks that have waited, as far as there is no gap.
static void write_waiting(block_receiver_t *receiver, uint32_t place, double now_s) {
  sequence_t *sequence = &receiver->sequences[place];
  while (sequence->allgather) {
    uint32_t slot = sequence->taken % BLOCK_WINDOW;
    if (!sequence->is_held[slot] || !write_next(receiver, place, waiting_at(receiver, place, slot), now_s)) return;
    sequence->is_held[slot] = false;
    sequence->num_held--;
    receiver->num_held--;
    note_due(receiver, place, now_s);
  }
}

void block_receiver_enqueue(block_receiver_t *receiver, allgather_t *allgather, double now_s) {
  allgather->num_incomplete = receiver->num_others;
  if (receiver->newest) receiver->newest->to_take = allgather;
  receiver->newest = allgather;
  if (!receiver->num_others) complete(receiver, allgather, now_s);
  for (uint32_t place = 0; place < receiver->num_others; place++) {
    sequence_t *sequence = &receiver->sequences[place];
    allgather->left[place] = allgather->num_chunks;
    if (!sequence->allgather) sequence->allgather = allgather;
  }
  for (uint32_t place = 0; place < receiver->num_others; place++) write_waiting(receiver, place, now_s);
}

static int hold(block_receiver_t *receiver, uint32_t place, uint32_t slot, const uint8_t *datagram) {
  uint32_t datagram_bytes = HEADER_BYTES + payload_bytes(receiver);
  if (!receiver->ring) receiver->ring = malloc((size_t)receiver->num_others * BLOCK_WINDOW * datagram_bytes);
  if (!receiver->ring) return -ENOMEM;
  memcpy(waiting_at(receiver, place, slot), datagram, datagram_bytes);
  receiver->sequences[place].is_held[slot] = true;
  receiver->sequences[place].num_held++;
  receiver->num_held++;
  return 0;
}

int block_receiver_take(block_receiver_t *receiver, uint32_t place, const uint8_t *datagram, double now_s) {
  sequence_t *sequence = &receiver->sequences[place];
  sequence->marks += (load16(datagram + FLAGS_AT) & ECN_ECHO) != 0;
  note_due(receiver, place, now_s); // a chunk that has come before shows that a receipt was lost
  int64_t number = multicast_unwrap(load32(datagram + SEQUENCE_AT), sequence->taken);
  int64_t ahead = number - (int64_t)sequence->taken;
  if (ahead < 0 || ahead >= BLOCK_WINDOW) return 0;
  uint32_t slot = (uint32_t)(number % BLOCK_WINDOW);
  if (sequence->is_held[slot]) return 0;
  if (ahead > 0 || !sequence->allgather) {
    int error = hold(receiver, place, slot, datagram);
    if (error) return error;
  } else if (write_next(receiver, place, datagram, now_s)) {
    write_waiting(receiver, place, now_s);
  }
  receiver->received++;
  return 1;
}

void block_receiver_tell(block_receiver_t *receiver, uint8_t *header) {
  uint32_t place = receiver->next_told;
  sequence_t *sequence = &receiver->sequences[place];
  receiver->next_told = (place + 1) % receiver->num_others;
  header[ABOUT_AT] = receiver->members.ids[member_at(receiver, place)];
  store32(header + RECEIVED_AT, (uint32_t)sequence->taken);
  header[MARKS_AT] = (uint8_t)sequence->marks;
  if (!sequence->num_held) sequence->is_due = false; // gaps need a whole report
}

static bool is_any_due(const block_receiver_t *receiver) {
  for (uint32_t place = 0; place < receiver->num_others; place++) {
    if (receiver->sequences[place].is_due) return true;
  }
  return false;
}

void block_receiver_end_telling(block_receiver_t *receiver, double now_s) {
  receiver->told_s = now_s;
  receiver->due_since_s = is_any_due(receiver) ? now_s : INFINITY;
}

uint32_t block_receiver_report(block_receiver_t *receiver, uint8_t *rows, uint32_t most) {
  uint32_t count = 0;
  for (uint32_t place = 0; place < receiver->num_others && count < most; place++) {
    sequence_t *sequence = &receiver->sequences[place];
    if (!sequence->is_due) continue;
    sequence->is_due = false;
    report_row_t row = {.worker_id = receiver->members.ids[member_at(receiver, place)],
                        .marks = (uint8_t)sequence->marks,
                        .received = (uint32_t)sequence->taken};
    for (uint32_t i = 0; i < BLOCK_WINDOW; i++) row.is_held[i] = sequence->is_held[(sequence->taken + i) % BLOCK_WINDOW];
    multicast_pack_row(&row, rows + (size_t)count++ * REPORT_ROW_BYTES);
  }
  if (!is_any_due(receiver)) receiver->due_since_s = INFINITY;
  return count;
}
