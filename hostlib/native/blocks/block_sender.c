// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "block_sender.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define INITIAL_WINDOW 16u // least window of all workers together that send to the same ports, and their first one
#define LEAST_WINDOW 4u    // of one worker: chunks after a lost one show the loss
#define MAX_BACKOFF 8u
#define STORM_LIMIT 8u // most chunks sent again when nothing at all comes back
#define NEW_MARKS 128u // a count of marks that is further ahead, modulo 256, is from before

static uint32_t least(uint32_t left, uint32_t right) { return left < right ? left : right; }

static uint32_t most(uint32_t left, uint32_t right) { return left > right ? left : right; }

uint32_t block_sender_largest_window(uint32_t window, uint32_t num_others) {
  return most(LEAST_WINDOW, least(BLOCK_WINDOW, window / most(1, num_others)));
}

void block_sender_init(block_sender_t *sender, transport_t *transport, const stream_options_t *options,
                       const multicast_origin_t *origin, block_receiver_t *receiver) {
  uint32_t num_others = receiver->num_others, least_window = most(LEAST_WINDOW, INITIAL_WINDOW / most(1, num_others));
  uint32_t largest = block_sender_largest_window(options->window, num_others);
  *sender = (block_sender_t){
      .transport = transport,
      .receiver = receiver,
      .origin = *origin,
      .own = receiver->members.own,
      .num_others = num_others,
      .values_per_packet = options->values_per_packet,
      .maximum_rto_s = options->maximum_rto_s,
      .rtt = rtt_new(options->initial_rto_s, options->minimum_rto_s, options->maximum_rto_s),
      .window = congestion_new(least_window, least_window, largest, 0, 0),
      .expiry_s = INFINITY,
  };
}

void block_sender_close(block_sender_t *sender) { free(sender->ring); }

static uint32_t datagram_bytes(const block_sender_t *sender) {
  return HEADER_BYTES + VALUE_BYTES * sender->values_per_packet;
}

static uint8_t *datagram_of(const block_sender_t *sender, uint64_t chunk) {
  return sender->ring + (size_t)(chunk % BLOCK_WINDOW) * datagram_bytes(sender);
}

uint32_t block_sender_outstanding(const block_sender_t *sender) { return (uint32_t)(sender->next_chunk - sender->base); }

int block_sender_enqueue(block_sender_t *sender, allgather_t *allgather) {
  if (!sender->num_others) {
    allgather->is_sent = true;
    return 0;
  }
  if (!sender->ring) sender->ring = malloc((size_t)BLOCK_WINDOW * datagram_bytes(sender));
  if (!sender->ring) return -ENOMEM;
  if (sender->newest) sender->newest->to_send = allgather;
  else sender->oldest = allgather;
  sender->newest = allgather;
  return 0;
}

// Retransmission timeout: receipts may be delayed, and only progress ends a back-off.
static double timeout_s(const block_sender_t *sender) {
  double steady_s = rtt_steady_s(&sender->rtt) + fmin(LONGEST_REPORT_DELAY_S, sender->rtt.smoothed_s);
  double backed_off_s = ldexp(steady_s, (int)least(sender->expiries, MAX_BACKOFF));
  return fmin(fmax(sender->maximum_rto_s, steady_s), backed_off_s);
}

static uint8_t *write_chunk(block_sender_t *sender, const allgather_t *allgather, uint32_t chunk) {
  uint32_t values = sender->values_per_packet;
  bool is_last = chunk + 1 == allgather->num_chunks;
  uint32_t start = (uint32_t)((uint64_t)chunk * values);
  uint8_t *at = datagram_of(sender, allgather->start + chunk);
  multicast_write_header(at, &sender->origin, is_last ? LAST : 0);
  store32(at + SEQUENCE_AT, (uint32_t)(allgather->start + chunk));
  store32(at + TENSOR_AT, allgather->tensor_id);
  store32(at + CHUNK_AT, chunk);
  store32(at + START_AT, start);
  store32(at + END_AT, is_last ? allgather->num_words : start + values);
  at[SIGNATURE_AT] = (uint8_t)allgather->signature;
  block_receiver_tell(sender->receiver, at);
  size_t row = (size_t)sender->own * allgather->num_chunks + chunk, bytes = (size_t)VALUE_BYTES * values;
  memcpy(at + HEADER_BYTES, allgather->blocks + row * bytes, bytes);
  return at;
}

static void note_sent(block_sender_t *sender, uint32_t count, double now_s) {
  if (count && !block_sender_outstanding(sender)) sender->expiry_s = now_s + timeout_s(sender);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t slot = (uint32_t)(sender->next_chunk++ % BLOCK_WINDOW);
    sender->lacking[slot] = (UINT32_C(1) << sender->num_others) - 1;
    sender->sent_s[slot] = now_s;
    sender->is_again[slot] = false;
  }
  sender->counters.sent += count;
}

// The oldest block was sent to its end.
static void finish_oldest(block_sender_t *sender) {
  allgather_t *allgather = sender->oldest;
  allgather->is_sent = true;
  sender->has_finished = sender->has_finished || allgather->is_complete;
  sender->oldest = allgather->to_send;
  if (!sender->oldest) sender->newest = NULL;
}

int block_sender_pump(block_sender_t *sender, double now_s) {
  uint8_t *datagrams[BLOCK_WINDOW];
  while (sender->oldest) {
    allgather_t *allgather = sender->oldest;
    uint32_t limit = least(congestion_limit(&sender->window), BLOCK_WINDOW), under_way = block_sender_outstanding(sender);
    if (under_way >= limit) return 1;
    uint32_t first = (uint32_t)(sender->next_chunk - allgather->start);
    uint32_t count = least(limit - under_way, allgather->num_chunks - first);
    for (uint32_t i = 0; i < count; i++) datagrams[i] = write_chunk(sender, allgather, first + i);
    block_receiver_end_telling(sender->receiver, now_s);
    int sent = sender->transport->send(sender->transport, datagrams, count);
    if (sent < 0) return sent;
    note_sent(sender, (uint32_t)sent, now_s);
    if (sent && allgather->first_sent_s == 0) allgather->first_sent_s = now_s;
    if (first + (uint32_t)sent == allgather->num_chunks) finish_oldest(sender);
    if (sent < (int)count) return 0;
  }
  return 1;
}

// Chunks that a worker turns out to have.
typedef struct {
  uint32_t count;
  bool has_again; // some were sent again
  double sent_s;  // the last one
} acknowledged_t;

static void acknowledge(block_sender_t *sender, uint32_t place, uint64_t chunk, acknowledged_t *acknowledged) {
  uint32_t slot = (uint32_t)(chunk % BLOCK_WINDOW), bit = UINT32_C(1) << place;
  if (!(sender->lacking[slot] & bit)) return;
  sender->lacking[slot] &= ~bit;
  acknowledged->count++;
  acknowledged->has_again = acknowledged->has_again || sender->is_again[slot];
  acknowledged->sent_s = sender->sent_s[slot];
}

// Chunks that were sent again, and those that waited for them, yield no round trip.
static void add_sample(block_sender_t *sender, const acknowledged_t *acknowledged, double now_s) {
  if (acknowledged->count && !acknowledged->has_again) rtt_add_sample(&sender->rtt, now_s - acknowledged->sent_s);
}

// A worker has so many chunks without a gap; the news may be outdated.
static void note_taken(block_sender_t *sender, uint32_t place, int64_t count, double now_s) {
  acknowledged_t acknowledged = {0};
  while ((int64_t)sender->taken[place] < count && sender->taken[place] < sender->next_chunk) {
    acknowledge(sender, place, sender->taken[place]++, &acknowledged);
  }
  add_sample(sender, &acknowledged, now_s);
}

// How many marks a worker's count adds to those that are known.
static uint8_t new_marks(const block_sender_t *sender, uint32_t place, uint8_t marks) {
  uint8_t more = (uint8_t)(marks - sender->marks[place]);
  return more < NEW_MARKS ? more : 0;
}

static void add_marks(block_sender_t *sender, uint32_t place, uint8_t count) {
  sender->marks[place] = (uint8_t)(sender->marks[place] + count);
  sender->counters.marked += count;
}

// Move the base beyond the chunks that all workers have taken.
static void advance(block_sender_t *sender, uint32_t marked, double now_s) {
  uint32_t before = block_sender_outstanding(sender);
  uint64_t base = sender->taken[0];
  for (uint32_t place = 1; place < sender->num_others; place++) {
    if (sender->taken[place] < base) base = sender->taken[place];
  }
  uint32_t count = (uint32_t)(base - sender->base);
  if (count) {
    sender->base = base;
    sender->expiries = 0;
    sender->expiry_s = base == sender->next_chunk ? INFINITY : now_s + timeout_s(sender);
  }
  if (count || marked) congestion_on_results(&sender->window, count, marked, before);
}

void block_sender_hear(block_sender_t *sender, uint32_t place, const uint8_t *header) {
  uint32_t bit = UINT32_C(1) << place;
  int64_t taken = multicast_unwrap(load32(header + RECEIVED_AT), sender->taken[place]);
  uint8_t marks = new_marks(sender, place, header[MARKS_AT]);
  bool is_first = !(sender->heard & bit);
  sender->heard |= bit;
  if (is_first || taken > sender->heard_taken[place]) sender->heard_taken[place] = taken;
  if (is_first || marks > sender->heard_marks[place]) sender->heard_marks[place] = marks;
}

void block_sender_end_hearing(block_sender_t *sender, double now_s) {
  if (!sender->heard) return;
  uint32_t marked = 0;
  for (uint32_t place = 0; place < sender->num_others; place++) {
    if (!(sender->heard >> place & 1)) continue;
    note_taken(sender, place, sender->heard_taken[place], now_s);
    add_marks(sender, place, sender->heard_marks[place]);
    marked += sender->heard_marks[place];
  }
  sender->heard = 0;
  advance(sender, marked, now_s);
}

static int send_again(block_sender_t *sender, const uint64_t *chunks, uint32_t count, double now_s) {
  uint8_t *datagrams[BLOCK_WINDOW];
  for (uint32_t i = 0; i < count; i++) {
    datagrams[i] = datagram_of(sender, chunks[i]);
    block_receiver_tell(sender->receiver, datagrams[i]);
    sender->is_again[chunks[i] % BLOCK_WINDOW] = true;
  }
  block_receiver_end_telling(sender->receiver, now_s);
  int sent = sender->transport->send(sender->transport, datagrams, count);
  if (sent < 0) return sent;
  for (int i = 0; i < sent; i++) sender->sent_s[chunks[i] % BLOCK_WINDOW] = now_s;
  sender->counters.retransmitted += (uint64_t)sent;
  return 0;
}

// Note what a report says. Returns the last chunk that it names beyond a gap, 0 if it names none.
static uint64_t note_report(block_sender_t *sender, uint32_t place, const report_row_t *row, double now_s) {
  int64_t start = multicast_unwrap(row->received, sender->taken[place]);
  acknowledged_t acknowledged = {0};
  uint64_t last = 0;
  note_taken(sender, place, start, now_s);
  for (uint32_t i = 0; i < BLOCK_WINDOW; i++) {
    int64_t chunk = start + i;
    if (!row->is_held[i] || chunk < (int64_t)sender->taken[place] || chunk >= (int64_t)sender->next_chunk) continue;
    last = (uint64_t)chunk;
    acknowledge(sender, place, last, &acknowledged);
  }
  add_sample(sender, &acknowledged, now_s);
  return last;
}

int block_sender_take_report(block_sender_t *sender, uint32_t place, const report_row_t *row, double now_s) {
  uint64_t lost[BLOCK_WINDOW], last = note_report(sender, place, row, now_s);
  uint32_t num_lost = 0;
  uint8_t marks = new_marks(sender, place, row->marks);
  add_marks(sender, place, marks);
  advance(sender, marks, now_s);
  for (uint64_t chunk = sender->taken[place]; chunk < sender->next_chunk; chunk++) {
    uint32_t slot = (uint32_t)(chunk % BLOCK_WINDOW);
    if (!(sender->lacking[slot] >> place & 1)) continue;
    // A chunk is late if a later one has come; the rest may be under way.
    double usual_s = chunk < last ? sender->rtt.smoothed_s : rtt_steady_s(&sender->rtt);
    if (now_s - sender->sent_s[slot] > usual_s) lost[num_lost++] = chunk;
  }
  if (!num_lost) return 0;
  congestion_on_loss(&sender->window, block_sender_outstanding(sender), 1);
  return send_again(sender, lost, num_lost, now_s);
}

int block_sender_keep_time(block_sender_t *sender, double now_s) {
  uint64_t missing[BLOCK_WINDOW];
  uint32_t count = 0, under_way = block_sender_outstanding(sender);
  if (now_s < sender->expiry_s) return 0;
  for (uint64_t chunk = sender->base; chunk < sender->next_chunk; chunk++) {
    if (sender->lacking[chunk % BLOCK_WINDOW]) missing[count++] = chunk;
  }
  if (!count) {
    // All workers hold the chunks. They have not submitted the allgather yet, or their receipts were lost: one chunk makes
    // them report.
    missing[count++] = sender->base;
  } else if (count < under_way) {
    congestion_on_loss(&sender->window, under_way, 1);
  }
  sender->expiries++;
  int error = send_again(sender, missing, least(count, STORM_LIMIT), now_s);
  sender->expiry_s = now_s + timeout_s(sender);
  return error;
}
