// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// After losses, the window is at most the number of slots divided by this. A chunk that is sent again holds its slot, and
// other chunks use the free ones. Measured: if the window has all slots, 5 % loss costs up to a sixth more of the rate.
#define FREE_SHARE 2u

#define INITIAL_CHUNKS 16u // window in the beginning
#define LEAST_CHUNKS 2u    // the next chunk travels while the switch adds this one

#define MAX_LEVEL 0xffffu // levels of switches have 16 bits in a FLUSH; no tree is as deep

static uint32_t at_least_1(uint32_t number) { return number ? number : 1; }

static uint32_t least(uint32_t left, uint32_t right) { return left < right ? left : right; }

bool stream_init(stream_t *stream, transport_t *transport, const stream_options_t *options, const closers_t *closers,
                 slot_t *slots, uint32_t slot_count) {
  *stream = (stream_t){.transport = transport,
                       .options = *options,
                       .closers = closers,
                       .slots = slots,
                       .slot_count = slot_count,
                       .datagram_bytes = HEADER_BYTES + VALUE_BYTES * options->values_per_packet,
                       .rtt = rtt_new(options->initial_rto_s, options->minimum_rto_s, options->maximum_rto_s),
                       .window = congestion_new(INITIAL_CHUNKS, LEAST_CHUNKS, least(options->window, slot_count),
                                                at_least_1(slot_count / FREE_SHARE),
                                                congestion_tolerated(options->num_workers)),
                       .straggler = straggler_new(options->straggler_s, options->maximum_rto_s),
                       .closing = closing_new(options->has_adaptive_wait),
                       .incast = incast_new(slot_count, options->num_trees),
                       .lock = PTHREAD_MUTEX_INITIALIZER};
  // Fewer chunks of a tree than show a loss would each wait for a timer.
  stream->window.blind = fmax(stream->window.blind, LATER_RESULTS * options->num_trees);
  stream_publish(stream);
  stream->datagrams = calloc(slot_count, stream->datagram_bytes);
  stream->scratch = calloc(slot_count, sizeof(slot_t *));
  stream->to_close = calloc(slot_count, sizeof(slot_t *));
  stream->taken = calloc(BATCH, sizeof(slot_t *));
  stream->answers = calloc(BATCH, sizeof(answer_t));
  bool has_memory = stream->datagrams && stream->scratch && stream->to_close && stream->taken && stream->answers;
  bool has_recovery = recovery_init(&stream->recovery, slots, slot_count, options->num_trees, &stream->rtt);
  return stale_init(&stream->stale, slot_count) && has_recovery && has_memory;
}

void stream_close(stream_t *stream) {
  recovery_close(&stream->recovery);
  stale_close(&stream->stale);
  free(stream->datagrams);
  free(stream->scratch);
  free(stream->to_close);
  free(stream->taken);
  free(stream->answers);
}

static slot_t *slot_of(const stream_t *stream, uint64_t place) { return &stream->slots[place % stream->slot_count]; }

uint8_t *stream_datagram(const stream_t *stream, const slot_t *slot) {
  return stream->datagrams + (size_t)(slot - stream->slots) * stream->datagram_bytes;
}

const uint8_t *stream_oldest(const stream_t *stream) {
  return stream->outstanding ? stream_datagram(stream, slot_of(stream, stream->base)) : NULL;
}

stream_state_t stream_state(stream_t *stream) {
  pthread_mutex_lock(&stream->lock);
  stream_state_t state = stream->state;
  pthread_mutex_unlock(&stream->lock);
  return state;
}

uint32_t stream_outstanding(const stream_t *stream) { return stream->outstanding; }

void stream_publish(stream_t *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->state = (stream_state_t){.counters = stream->counters,
                                   .round_trip_s = stream->rtt.smoothed_s,
                                   .outstanding = stream->outstanding,
                                   .window = congestion_limit(&stream->window),
                                   .incast_trials = stream->incast.num_trials};
  pthread_mutex_unlock(&stream->lock);
}

static uint64_t end_of(const source_t *source) { return source->start + source->num_chunks; }

void stream_enqueue(stream_t *stream, source_t *source) {
  source->next = NULL;
  source->start = stream->end;
  stream->end += source->num_chunks;
  if (stream->newest) stream->newest->next = source;
  else stream->oldest = source;
  stream->newest = source;
  if (!stream->preparing) stream->preparing = source;
  if (!stream->sending) stream->sending = source;
}

// Tell the sources what is below the base, and let go of those that are complete.
static void drain(stream_t *stream, double now_s) {
  while (stream->oldest) {
    source_t *source = stream->oldest;
    if (stream->base < end_of(source)) {
      if (stream->base > source->start) source_advance(source, (uint32_t)(stream->base - source->start));
      return;
    }
    source_advance(source, source->num_chunks);
    if (!source->is_abandoned) source->last_result_s = now_s;
    source->is_finished = stream->has_finished = true;
    stream->oldest = source->next;
    if (!stream->oldest) stream->newest = NULL;
    if (stream->sending == source) stream->sending = source->next;
    if (stream->preparing == source) stream->preparing = source->next;
  }
}

// Move the base over chunks that have their results.
static void advance(stream_t *stream, double now_s) {
  if (!stream->outstanding) stream->base = stream->next_chunk;
  while (stream->base < stream->next_chunk && !slot_of(stream, stream->base)->is_busy) stream->base++;
  drain(stream, now_s);
}

// Step over chunks that are not to be sent.
static void skip_abandoned(stream_t *stream) {
  while (stream->sending && (stream->sending->is_abandoned || stream->next_chunk == end_of(stream->sending))) {
    stream->next_chunk = end_of(stream->sending);
    stream->sending = stream->sending->next;
    if (!stream->sending) closing_hurry(&stream->closing);
  }
  while (stream->preparing && stream->preparing->is_abandoned) stream->preparing = stream->preparing->next;
  if (stream->prepared < stream->next_chunk) stream->prepared = stream->next_chunk;
  if (stream->preparing && stream->prepared < stream->preparing->start) stream->prepared = stream->preparing->start;
}

static void release(stream_t *stream, slot_t *slot) {
  slot->is_busy = false;
  if (slot->is_set_aside) stale_stop(stream, slot);
  slot->hold_s = INFINITY;
  straggler_stop(slot);
  stream->outstanding--;
}

void stream_abandon(stream_t *stream, source_t *source) {
  source_t *active = stream->oldest;
  while (active && active != source) active = active->next;
  if (!active) return;
  for (uint32_t i = 0; i < stream->slot_count; i++) {
    slot_t *slot = &stream->slots[i];
    if (!slot->is_busy || slot->source != source) continue;
    release(stream, slot);
    recovery_release(&stream->recovery, slot);
  }
  if (!stream->outstanding) recovery_rest(&stream->recovery);
  source->is_abandoned = true;
  skip_abandoned(stream);
  advance(stream, source->last_result_s);
  stream_publish(stream);
}

void stream_miss(stream_t *stream, slot_t *slot, double now_s) {
  source_t *source = slot->source;
  source->has_missed = slot->has_lacked = true;
  stream->lenient_from = end_of(source) + stream->slot_count;
  // Who is in it is not known: it may lack all that was paid for, and any worker.
  if (source->tolerance) tolerance_settle(source->tolerance, slot->paid, stream->closers[slot->tree].members);
  release(stream, slot);
  recovery_release(&stream->recovery, slot);
  if (!stream->outstanding) recovery_rest(&stream->recovery);
  advance(stream, now_s);
}

// Have old values kept in the place of results. Rounds that are over need no more of this worker.
static void keep_stale(stream_t *stream, slot_t *const *slots, uint32_t count, double now_s) {
  for (uint32_t i = 0; i < count; i++) {
    stale_keep(stream, slots[i]);
    release(stream, slots[i]);
    recovery_release(&stream->recovery, slots[i]);
  }
  stream->counters.kept += count;
  if (!stream->outstanding) recovery_rest(&stream->recovery);
  if (count) advance(stream, now_s);
}

// Write the next chunk's datagram into its slot. Returns false if the caller has not prepared its values.
static bool prepare(stream_t *stream, double now_s) {
  const stream_options_t *options = &stream->options;
  source_t *source = stream->preparing;
  uint32_t chunk = (uint32_t)(stream->prepared - source->start), values = options->values_per_packet;
  if (chunk >= source->num_ready) return false;
  if (chunk == 0) source->since_s = now_s;

  slot_t *slot = slot_of(stream, stream->prepared);
  slot->source = source;
  slot->chunk = chunk;
  slot->round = (uint32_t)(stream->prepared / stream->slot_count + 1);
  slot->is_withheld = source->withheld && source->withheld[chunk];
  slot->is_large = source->large && source->large[chunk];
  slot->is_ahead = slot->is_large && source->large_priority > source->priority;
  slot->paid = slot->signs = 0;
  slot->is_over = false;
  slot->hold_s = INFINITY;

  bool is_last = chunk + 1 == source->num_chunks;
  uint32_t start = (uint32_t)((uint64_t)chunk * values);
  uint8_t *at = stream_datagram(stream, slot);
  at[VERSION_AT] = WIRE_VERSION;
  at[OPERATION_AT] = source->is_maximum ? AGGREGATE_MAX : AGGREGATE_ADD;
  store16(at + FLAGS_AT, is_last ? LAST : 0);
  store16(at + TREE_AT, slot->tree_id);
  at[CHILD_AT] = (uint8_t)options->child_id;
  at[PRIORITY_AT] = slot->is_large ? source->large_priority : source->priority;
  store32(at + GENERATION_AT, options->generation);
  store32(at + SLOT_AT, slot->local);
  store32(at + ROUND_AT, slot->round);
  store32(at + TENSOR_AT, source->tensor_id);
  store32(at + CHUNK_AT, chunk);
  store32(at + START_AT, start);
  store32(at + END_AT, is_last ? (uint32_t)source->num_values : start + values);
  store32(at + BITMAP_AT, options->worker_bitmap);
  store16(at + CONTRIBUTORS_AT, 1);
  at[EXPONENT_AT] = source->exponents ? source->exponents[chunk] : 0;
  if (options->has_statements) at[EXPONENT_AT] = stale_statement(stream, stream->prepared);
  source_fill(source, chunk, at + HEADER_BYTES, values);

  stream->prepared++;
  if (stream->prepared == end_of(source)) stream->preparing = source->next;
  return true;
}

static void note_sent(stream_t *stream, double now_s) {
  slot_t *slot = slot_of(stream, stream->next_chunk);
  source_t *source = slot->source;
  if (source->first_sent_s == 0) source->first_sent_s = now_s;
  slot->is_busy = true;
  recovery_start(&stream->recovery, slot, now_s);
  closing_start(stream, slot);
  if (stream->straggler.deadline_s < INFINITY) {
    straggler_start(&stream->straggler, slot, source->since_s, now_s, rtt_steady_s(&stream->rtt));
  }
  stream->outstanding++;
  stream->next_chunk++;
  stream->counters.sent++;
}

// Collect the next chunks that may leave: as many as window, slots and one source allow, all withheld or none.
static uint32_t collect(stream_t *stream, double now_s, uint8_t **datagrams) {
  const stream_options_t *options = &stream->options;
  uint64_t limit = stream->base + stream->slot_count;
  uint32_t window = congestion_limit(&stream->window), count = 0;
  window = closing_window(&stream->closing, window, stream->slot_count, &stream->rtt);
  window = stale_window(stream, window);
  if (options->has_dynamic_incast) window = incast_window(&stream->incast, window);
  uint32_t in_flight = stream->outstanding - stream->stale.num_aside;
  if (in_flight >= window) return 0;
  if (limit > stream->next_chunk + (window - in_flight)) limit = stream->next_chunk + (window - in_flight);
  if (limit > end_of(stream->sending)) limit = end_of(stream->sending);
  for (uint64_t place = stream->next_chunk; place < limit && count < BATCH; place++, count++) {
    if (place == stream->prepared && !prepare(stream, now_s)) break;
    slot_t *slot = slot_of(stream, place);
    if (slot->is_withheld != slot_of(stream, stream->next_chunk)->is_withheld) break;
    datagrams[count] = stream_datagram(stream, slot);
  }
  return count;
}

int stream_pump(stream_t *stream, double now_s) {
  uint8_t *datagrams[BATCH];
  for (;;) {
    skip_abandoned(stream);
    if (!stream->sending) return 1;
    uint32_t count = collect(stream, now_s, datagrams);
    if (count == 0) return 1;
    int sent = (int)count;
    if (!slot_of(stream, stream->next_chunk)->is_withheld) {
      sent = stream->transport->send(stream->transport, datagrams, count);
      if (sent < 0) return sent;
    }
    if (sent && !stream->outstanding) recovery_resume(&stream->recovery, now_s);
    for (int i = 0; i < sent; i++) note_sent(stream, now_s);
    if (sent < (int)count) return 0;
  }
}

bool stream_is_hungry(const stream_t *stream) {
  const source_t *source = stream->preparing;
  if (!source || source->num_ready == source->num_chunks) return false;
  return stream->prepared - source->start >= source->num_ready;
}

// Send slots again. Returns how many the transport took, or -errno.
static int send_again(stream_t *stream, slot_t *const *slots, uint32_t count, double now_s, bool is_probe) {
  uint8_t *datagrams[BATCH];
  uint32_t done = 0;
  while (done < count) {
    uint32_t part = least(count - done, BATCH);
    for (uint32_t i = 0; i < part; i++) datagrams[i] = stream_datagram(stream, slots[done + i]);
    int sent = stream->transport->send(stream->transport, datagrams, part);
    if (sent < 0) return sent;
    for (int i = 0; i < sent; i++) recovery_start_again(&stream->recovery, slots[done + (uint32_t)i], now_s, is_probe);
    done += (uint32_t)sent;
    if (sent < (int)part) break;
  }
  stream->counters.retransmitted += done;
  return (int)done;
}

// Close the rounds of slots: with the contributors that are there, or with all but those that were paid for.
static int send_flushes(stream_t *stream, slot_t *const *slots, uint32_t count) {
  if (!count) return 0;
  uint8_t *copies = malloc((size_t)BATCH * stream->datagram_bytes), *datagrams[BATCH];
  if (!copies) return -ENOMEM;
  int sent = 0;
  for (uint32_t done = 0; done < count && sent >= 0; done += BATCH) {
    uint32_t part = least(count - done, BATCH);
    for (uint32_t i = 0; i < part; i++) {
      slot_t *slot = slots[done + i];
      uint8_t *at = datagrams[i] = copies + (size_t)i * stream->datagram_bytes;
      memcpy(at, stream_datagram(stream, slot), stream->datagram_bytes);
      at[OPERATION_AT] = FLUSH;
      at[PRIORITY_AT] = (uint8_t)stream->options.control_priority;
      store16(at + FLAGS_AT, 0);
      at[EXPONENT_AT] = 0;
      const closers_t *closers = &stream->closers[slot->tree];
      store16(at + CONTRIBUTORS_AT, (uint16_t)(slot->paid ? closers->level : slot->level));
      at[EXPECTED_AT] = slot->paid && closers->is_root ? (uint8_t)(tolerance_members(closers) - slot->paid) : 0;
      if (!slot->paid && slot->level < MAX_LEVEL) slot->level++;
    }
    sent = stream->transport->send(stream->transport, datagrams, part);
    if (sent > 0) stream->counters.flushed += (uint64_t)sent;
  }
  free(copies);
  return sent < 0 ? sent : 0;
}

// Close rounds that may be closed. Keep in `slots` those that are to be sent again, and return how many, or -errno.
static int close_tolerated(stream_t *stream, slot_t **slots, uint32_t count, double now_s, sign_t sign) {
  uint32_t num_again = 0, num_closing = 0;
  for (uint32_t i = 0; i < count; i++) {
    stale_remedy_t stale = stale_remedy(stream, slots[i], now_s, sign == BY_RESULTS);
    if (stale == STALE_KEEP) keep_stale(stream, &slots[i], 1, now_s);
    if (stale != STALE_REPAIR) continue;
    remedy_t remedy = closing_remedy(stream, slots[i], now_s, sign);
    if (remedy == SEND_AGAIN) slots[num_again++] = slots[i];
    if (remedy == CLOSE) stream->to_close[num_closing++] = slots[i];
  }
  int error = send_flushes(stream, stream->to_close, num_closing);
  return error < 0 ? error : (int)num_again;
}

// Send again at once what later results show to be lost, unless it may be let go.
static int send_lost(stream_t *stream, double now_s) {
  uint32_t num_new = 0;
  int count = (int)recovery_lost(&stream->recovery, now_s, stream->scratch);
  if (count > 0) count = close_tolerated(stream, stream->scratch, (uint32_t)count, now_s, BY_RESULTS);
  if (count <= 0) return count;
  for (int i = 0; i < count; i++) num_new += !stream->scratch[i]->is_again;
  if (num_new) congestion_on_loss(&stream->window, stream->outstanding, num_new);
  int sent = send_again(stream, stream->scratch, (uint32_t)count, now_s, false);
  if (sent < 0) return sent;
  stream->counters.fast_retransmitted += (uint64_t)sent;
  return 0;
}

void stream_begin(stream_t *stream) {
  stream->num_taken = stream->num_marked = 0;
  stream->is_in_order = true;
}

// A result echoes the header of its contribution, all but flags, child, bitmap, contributors and exponent.
static bool is_result(const uint8_t *sent, const uint8_t *got) {
  return got[VERSION_AT] == WIRE_VERSION && got[OPERATION_AT] == RESULT && memcmp(got + TREE_AT, sent + TREE_AT, 2) == 0 &&
         memcmp(got + GENERATION_AT, sent + GENERATION_AT, BITMAP_AT - GENERATION_AT) == 0;
}

bool stream_take(stream_t *stream, slot_t *slot, const uint8_t *datagram) {
  if (!slot->is_busy || !is_result(stream_datagram(stream, slot), datagram)) return false;
  source_t *source = slot->source;
  uint16_t flags = load16(datagram + FLAGS_AT);
  source_keep(source, slot->chunk, datagram + HEADER_BYTES, load16(datagram + CONTRIBUTORS_AT),
              stream->options.values_per_packet);
  if (source->bitmaps) source->bitmaps[slot->chunk] = load32(datagram + BITMAP_AT);
  if (stream->options.has_statements) stale_note_result(stream, slot, datagram[EXPONENT_AT]);
  if (source->may_be_stale && slot->signs) stale_learn(stream, flags & REPLAY);
  // A result that a flush caused, or asked for again, tells no round trip.
  bool is_prompt = !(flags & FLUSHED) && !slot->paid;
  if (source->tolerance) {
    const closers_t *closers = &stream->closers[slot->tree];
    uint32_t absent = closers->members & ~load32(datagram + BITMAP_AT);
    tolerance_settle(source->tolerance, slot->paid, absent);
    closing_note_result(&stream->closing, slot, closers, absent);
    slot->has_lacked = absent;
    is_prompt = is_prompt && !absent; // a lower switch's flush shows by what it lacks
  }
  source->has_saturated = source->has_saturated || flags & OVERFLOW;
  stream->counters.replayed += (flags & REPLAY) != 0;
  stream->num_marked += (flags & ECN_ECHO) != 0;
  // Results come in order unless something was lost, or trees take turns.
  stream->is_in_order = stream->is_in_order && slot == slot_of(stream, stream->base + stream->num_taken);
  // Who tolerates loss waits for the flushes of others, for which the RTTs must allow. Measured in simulated time: with those
  // of its own repetitions, 20 % loss of results takes a tenth longer.
  bool answers_again = flags & REPLAY && stream->closers[slot->tree].is_root && !source->tolerance;
  stream->answers[stream->num_taken] = !is_prompt ? TELLS_NOTHING : answers_again ? ANSWERS_AGAIN : ANSWERS_ALL;
  stream->taken[stream->num_taken++] = slot;
  release(stream, slot);
  return true;
}

// Learn how long the chunks of a batch have taken.
static void note_times(stream_t *stream, double now_s) {
  if (!stream->closing.tail.is_adaptive) return;
  for (uint32_t i = 0; i < stream->num_taken; i++) {
    const slot_t *slot = stream->taken[i];
    const source_t *source = slot->source;
    if (!source->tolerance || slot->is_withheld) continue;
    bool is_let_go = source->contributors[slot->chunk] < stream->options.num_workers;
    tail_add(&stream->closing.tail, now_s - slot->begun_s, is_let_go);
  }
}

int stream_end(stream_t *stream, double now_s) {
  uint32_t count = stream->num_taken;
  if (count == 0) return 0;
  note_times(stream, now_s);
  if (stream->options.has_dynamic_incast) {
    uint32_t window = congestion_limit(&stream->window);
    incast_on_results(&stream->incast, stream->taken, count, now_s, window, stream->outstanding);
  }
  recovery_finish(&stream->recovery, stream->taken, stream->answers, count, now_s, !stream->outstanding);
  stream->counters.received += count;
  stream->counters.marked += stream->num_marked;
  congestion_on_results(&stream->window, count, stream->num_marked, stream->outstanding + count);
  advance(stream, now_s);
  if (stream->options.has_statements) keep_stale(stream, stream->scratch, stale_due(stream, stream->scratch), now_s);
  // In order, all chunks without result were sent after those that have one, which can show no loss.
  if (stream->is_in_order && !stream->recovery.num_again) return 0;
  return send_lost(stream, now_s);
}

double stream_next_s(const stream_t *stream) {
  double closing_s = fmin(stream->closing.held_s, stream->closing.late_s);
  return fmin(fmin(recovery_next_s(&stream->recovery), stream->straggler.next_s), closing_s);
}

// Timers have run out: send again, and close what may be closed.
static int send_expired(stream_t *stream, double now_s) {
  uint32_t outrun, count = recovery_expired(&stream->recovery, now_s, stream->scratch, &outrun);
  if (outrun) congestion_on_loss(&stream->window, stream->outstanding, outrun);
  return send_again(stream, stream->scratch, count, now_s, false);
}

// No result came for a while: ask for some.
static int send_probes(stream_t *stream, double now_s) {
  bool has_progress = stream->recovery.has_progress;
  uint32_t count = recovery_silent(&stream->recovery, now_s, stream->scratch);
  // Without any result since the first chunks left, another worker may be late, and nothing is lost.
  int left = (int)count;
  if (count && has_progress) left = close_tolerated(stream, stream->scratch, count, now_s, BY_SILENCE);
  if (left <= 0) return left;
  int sent = send_again(stream, stream->scratch, (uint32_t)left, now_s, true);
  if (sent > 0) stream->counters.probe_retransmitted += (uint64_t)sent;
  return sent;
}

// Look again at chunks that were held for a while.
static int end_holds(stream_t *stream, double now_s) {
  uint32_t count = closing_due(stream, now_s, stream->scratch);
  int left = close_tolerated(stream, stream->scratch, count, now_s, BY_HOLD);
  if (left <= 0) return left;
  congestion_on_loss(&stream->window, stream->outstanding, (uint32_t)left);
  return send_again(stream, stream->scratch, (uint32_t)left, now_s, false);
}

int stream_keep_time(stream_t *stream, double now_s) {
  int sent = 0;
  if (now_s >= recovery_next_s(&stream->recovery)) {
    sent = send_lost(stream, now_s);
    if (sent == 0) sent = send_expired(stream, now_s);
    if (sent == 0) sent = send_probes(stream, now_s);
  }
  if (sent >= 0 && now_s >= stream->closing.held_s) sent = end_holds(stream, now_s);
  if (sent >= 0 && now_s >= stream->closing.late_s) {
    uint32_t num_late = closing_late(stream, now_s, stream->to_close);
    sent = send_flushes(stream, stream->to_close, num_late);
  }
  if (sent < 0 || now_s < stream->straggler.next_s) return sent < 0 ? sent : 0;
  uint32_t count = straggler_due(&stream->straggler, stream->slots, stream->slot_count, now_s, stream->scratch);
  return send_flushes(stream, stream->scratch, count);
}
