// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "block_exchange.h"

#include <math.h>
#include <stdlib.h>

#define NO_PLACE 255u

static uint32_t datagram_bytes(const block_exchange_t *exchange) {
  return HEADER_BYTES + VALUE_BYTES * exchange->values_per_packet;
}

bool block_exchange_init(block_exchange_t *exchange, transport_t *transport, const stream_options_t *options,
                         uint16_t tree_id, const members_t *members) {
  *exchange = (block_exchange_t){
      .transport = transport,
      .origin = {tree_id, (uint8_t)options->child_id, options->generation, options->worker_bitmap},
      .values_per_packet = options->values_per_packet,
      .reported_s = -INFINITY,
      .lock = PTHREAD_MUTEX_INITIALIZER,
  };
  memset(exchange->place_of, NO_PLACE, sizeof exchange->place_of);
  for (uint32_t i = 0; i < members->num_members; i++) {
    if (i != members->own) exchange->place_of[members->ids[i]] = (uint8_t)(i - (i > members->own));
  }
  block_receiver_init(&exchange->receiver, members, options->values_per_packet);
  block_sender_init(&exchange->sender, transport, options, &exchange->origin, &exchange->receiver);
  exchange->report = malloc(datagram_bytes(exchange));
  return exchange->report;
}

void block_exchange_close(block_exchange_t *exchange) {
  block_sender_close(&exchange->sender);
  block_receiver_close(&exchange->receiver);
  free(exchange->report);
}

block_counters_t block_exchange_counters(block_exchange_t *exchange) {
  pthread_mutex_lock(&exchange->lock);
  block_counters_t counters = exchange->published;
  pthread_mutex_unlock(&exchange->lock);
  return counters;
}

void block_exchange_publish(block_exchange_t *exchange) {
  const block_sender_counters_t *sender = &exchange->sender.counters;
  pthread_mutex_lock(&exchange->lock);
  exchange->published = (block_counters_t){.sent = sender->sent,
                                           .retransmitted = sender->retransmitted,
                                           .received = exchange->receiver.received,
                                           .marked = sender->marked,
                                           .reported = exchange->reports};
  pthread_mutex_unlock(&exchange->lock);
}

int block_exchange_enqueue(block_exchange_t *exchange, allgather_t *allgather, double now_s) {
  allgather->start = exchange->end;
  allgather->to_send = allgather->to_take = NULL;
  exchange->end += allgather->num_chunks;
  int result = block_sender_enqueue(&exchange->sender, allgather);
  // This comes first: if the others have sent another tensor, they must learn of it, too.
  if (result >= 0) result = block_sender_pump(&exchange->sender, now_s);
  if (result >= 0) block_receiver_enqueue(&exchange->receiver, allgather, now_s);
  block_exchange_publish(exchange);
  return result < 0 ? result : 0;
}

int block_exchange_send(block_exchange_t *exchange, double now_s) { return block_sender_pump(&exchange->sender, now_s); }

// The place of a multicast's sender among the others, NO_PLACE for one that is refused.
static uint32_t sender_of(const block_exchange_t *exchange, const uint8_t *datagram, uint64_t refused[REFUSALS]) {
  uint32_t bitmap = load32(datagram + BITMAP_AT);
  if (load16(datagram + TREE_AT) != exchange->origin.tree_id) {
    refused[REFUSED_FOREIGN_JOB]++;
    return NO_PLACE;
  }
  if (load32(datagram + GENERATION_AT) != exchange->origin.generation) {
    refused[REFUSED_GENERATION]++;
    return NO_PLACE;
  }
  bool is_one = bitmap && !(bitmap & (bitmap - 1));
  uint32_t place = is_one ? exchange->place_of[__builtin_ctz(bitmap)] : NO_PLACE;
  refused[REFUSED_FOREIGN_WORKER] += place == NO_PLACE;
  return place;
}

static int take_report(block_exchange_t *exchange, uint32_t place, const uint8_t *datagram, double now_s) {
  uint32_t words = load32(datagram + END_AT);
  if (words > exchange->values_per_packet) words = exchange->values_per_packet;
  for (uint32_t i = 0; i < words / REPORT_WORDS; i++) {
    report_row_t row;
    multicast_unpack_row(datagram + HEADER_BYTES + (size_t)i * REPORT_ROW_BYTES, &row);
    if (row.worker_id != exchange->receiver.members.ids[exchange->receiver.members.own]) continue;
    int error = block_sender_take_report(&exchange->sender, place, &row, now_s);
    if (error) return error;
  }
  return 0;
}

int block_exchange_take(block_exchange_t *exchange, const uint8_t *const *datagrams, uint32_t count, double now_s,
                        uint64_t refused[REFUSALS]) {
  uint8_t own_id = exchange->receiver.members.ids[exchange->receiver.members.own], places[BATCH];
  int num_news = 0;
  for (uint32_t i = 0; i < count; i++) {
    places[i] = (uint8_t)sender_of(exchange, datagrams[i], refused);
    if (places[i] == NO_PLACE) continue;
    if (datagrams[i][ABOUT_AT] == own_id) block_sender_hear(&exchange->sender, places[i], datagrams[i]);
  }
  block_sender_end_hearing(&exchange->sender, now_s);
  for (uint32_t i = 0; i < count; i++) {
    if (places[i] == NO_PLACE || !(load16(datagrams[i] + FLAGS_AT) & REPORT)) continue;
    int error = take_report(exchange, places[i], datagrams[i], now_s);
    if (error) return error;
    places[i] = NO_PLACE;
    num_news++;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (places[i] == NO_PLACE) continue;
    int is_new = block_receiver_take(&exchange->receiver, places[i], datagrams[i], now_s);
    if (is_new < 0) return is_new;
    refused[REFUSED_DUPLICATE] += !is_new;
    num_news += is_new;
  }
  return num_news;
}

static double report_s(const block_exchange_t *exchange) {
  const block_receiver_t *receiver = &exchange->receiver;
  double since_s = receiver->due_since_s, delay_s = exchange->sender.rtt.smoothed_s / REPORT_DELAY_SHARE;
  if (receiver->num_held) delay_s /= 2;
  else since_s = fmax(since_s, receiver->told_s);
  delay_s = fmin(LONGEST_REPORT_DELAY_S, fmax(LEAST_REPORT_DELAY_S, delay_s));
  return fmax(since_s, exchange->reported_s) + delay_s;
}

static int send_report(block_exchange_t *exchange, double now_s) {
  uint8_t *datagram = exchange->report;
  memset(datagram, 0, datagram_bytes(exchange));
  uint32_t num_rows =
      block_receiver_report(&exchange->receiver, datagram + HEADER_BYTES, exchange->values_per_packet / REPORT_WORDS);
  multicast_write_header(datagram, &exchange->origin, REPORT);
  store32(datagram + END_AT, num_rows * REPORT_WORDS);
  int sent = exchange->transport->send(exchange->transport, &datagram, 1);
  if (sent < 0) return sent;
  // A report that the transport does not take is like a lost one: the sender sends again.
  exchange->reports += (uint64_t)sent;
  if (isinf(exchange->receiver.due_since_s)) exchange->reported_s = now_s;
  return 0;
}

double block_exchange_next_s(const block_exchange_t *exchange) {
  return fmin(exchange->sender.expiry_s, report_s(exchange));
}

int block_exchange_keep_time(block_exchange_t *exchange, double now_s) {
  int error = block_sender_keep_time(&exchange->sender, now_s);
  while (!error && now_s >= report_s(exchange)) error = send_report(exchange, now_s);
  return error;
}

bool block_exchange_has_news(block_exchange_t *exchange) {
  bool is_news = exchange->sender.has_finished || exchange->receiver.has_finished || exchange->receiver.mismatch.is_there;
  exchange->sender.has_finished = exchange->receiver.has_finished = false;
  return is_news;
}

const mismatch_t *block_exchange_mismatch(const block_exchange_t *exchange) { return &exchange->receiver.mismatch; }

uint32_t block_exchange_lagging(const block_exchange_t *exchange) {
  uint32_t lagging = 0;
  for (uint32_t place = 0; place < exchange->sender.num_others && place < MAX_OTHERS; place++) {
    lagging |= (uint32_t)(exchange->sender.taken[place] < exchange->sender.next_chunk) << place;
  }
  return lagging;
}

bool block_exchange_is_owing(const block_exchange_t *exchange) {
  return block_sender_outstanding(&exchange->sender) || !isinf(exchange->receiver.due_since_s);
}
