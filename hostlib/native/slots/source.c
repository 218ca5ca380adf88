// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <string.h>

#include "header.h"
#include "../values/ordered.h"
#include "../values/quantization.h"

static uint64_t first_of(uint32_t chunk, uint32_t values_per_packet) { return (uint64_t)chunk * values_per_packet; }

// Numbers of a chunk, which are fewer than a packet's values only in the last one.
static uint32_t numbers_in(const source_t *source, uint32_t chunk, uint32_t values_per_packet) {
  uint64_t left = source->num_values - first_of(chunk, values_per_packet);
  return left < values_per_packet ? (uint32_t)left : values_per_packet;
}

static float factor32(const void *factors, uint32_t chunk) { return ((const float *)factors)[chunk]; }

static double factor64(const void *factors, uint32_t chunk) { return ((const double *)factors)[chunk]; }

static winner_t winner_of(const source_t *source) {
  return source->values == VALUES_FLOAT32_REVERSED ? SMALLER_WINS : LARGER_WINS;
}

static void fill(const source_t *source, uint32_t chunk, uint8_t *values, uint32_t values_per_packet, byte_order_t order) {
  uint32_t count = numbers_in(source, chunk, values_per_packet);
  uint64_t first = first_of(chunk, values_per_packet);
  uint8_t *end = values + (size_t)VALUE_BYTES * count;
  memset(end, 0, (size_t)VALUE_BYTES * (values_per_packet - count));
  // A factor of 0 stands for zeros, also where the numbers are not finite.
  switch ((values_t)source->values) {
  case VALUES_LIMBS: exact_fill(source->exact, chunk, values, order); return;
  case VALUES_READY: memcpy(values, (const uint8_t *)source->data + VALUE_BYTES * first, (size_t)VALUE_BYTES * count); return;
  case VALUES_INT32: int32_to_values((const int32_t *)source->data + first, values, count, order); return;
  case VALUES_FLOAT16:
    if (factor32(source->forward, chunk) == 0) break;
    float16_to_values((const uint16_t *)source->data + first, factor32(source->forward, chunk), values, count, order);
    return;
  case VALUES_FLOAT32:
    if (factor32(source->forward, chunk) == 0) break;
    float32_to_values((const float *)source->data + first, factor32(source->forward, chunk), values, count, order);
    return;
  case VALUES_FLOAT64:
    if (factor64(source->forward, chunk) == 0) break;
    float64_to_values((const double *)source->data + first, factor64(source->forward, chunk), values, count, order);
    return;
  case VALUES_INT32_REVERSED:
    int32_to_ordered((const int32_t *)source->data + first, SMALLER_WINS, values, count, order);
    return;
  case VALUES_FLOAT32_ORDERED:
  case VALUES_FLOAT32_REVERSED:
    float32_to_ordered((const uint32_t *)source->data + first, winner_of(source), values, count, order);
    return;
  }
  memset(values, 0, (size_t)VALUE_BYTES * count);
}

static void take(source_t *source, uint32_t chunk, const uint8_t *values, uint32_t values_per_packet, byte_order_t order) {
  uint64_t first = first_of(chunk, values_per_packet);
  uint32_t divisor = source->is_mean ? source->contributors[chunk] : 1;
  if (!divisor) divisor = 1; // no switch sends a result of nobody
  switch ((values_t)source->values) {
  case VALUES_READY:
  case VALUES_LIMBS: return; // once all chunks of a number are there
  case VALUES_INT32: int32_from_values(values, (int32_t *)source->output + first, values_per_packet, order); return;
  case VALUES_FLOAT16:
    float16_from_values(values, (float)divisor, factor32(source->backward, chunk), (uint16_t *)source->output + first,
                        values_per_packet, order);
    return;
  case VALUES_FLOAT32:
    float32_from_values(values, (float)divisor, factor32(source->backward, chunk), (float *)source->output + first,
                        values_per_packet, order);
    return;
  case VALUES_FLOAT64:
    float64_from_values(values, divisor, factor64(source->backward, chunk), (double *)source->output + first,
                        values_per_packet, order);
    return;
  case VALUES_INT32_REVERSED:
    int32_from_ordered(values, SMALLER_WINS, (int32_t *)source->output + first, values_per_packet, order);
    return;
  case VALUES_FLOAT32_ORDERED:
  case VALUES_FLOAT32_REVERSED:
    float32_from_ordered(values, winner_of(source), (uint32_t *)source->output + first, values_per_packet, order);
    return;
  }
}

void source_fill(const source_t *source, uint32_t chunk, uint8_t *values, uint32_t values_per_packet) {
  fill(source, chunk, values, values_per_packet, NETWORK_ORDER);
}

void source_keep(source_t *source, uint32_t chunk, const uint8_t *values, uint16_t contributors,
                 uint32_t values_per_packet) {
  uint64_t first = first_of(chunk, values_per_packet);
  source->contributors[chunk] = contributors;
  if (source->results) {
    memcpy(source->results + VALUE_BYTES * first, values, (size_t)VALUE_BYTES * values_per_packet);
  }
  take(source, chunk, values, values_per_packet, NETWORK_ORDER);
}

void source_fill_rows(const source_t *source, uint32_t first, uint32_t count, int32_t *rows, uint32_t values_per_packet) {
  for (uint32_t i = 0; i < count; i++) {
    fill(source, first + i, (uint8_t *)(rows + (size_t)i * values_per_packet), values_per_packet, NATIVE_ORDER);
  }
}

void source_take_rows(source_t *source, uint32_t first, uint32_t count, const int32_t *rows, uint32_t values_per_packet) {
  if (source->values == VALUES_LIMBS) {
    exact_take(source->exact, first, first + count, source->num_chunks, source->results, NATIVE_ORDER);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    take(source, first + i, (const uint8_t *)(rows + (size_t)i * values_per_packet), values_per_packet, NATIVE_ORDER);
  }
}

void source_advance(source_t *source, uint32_t num_done) {
  if (source->values == VALUES_LIMBS && !source->is_abandoned) {
    exact_round(source->exact, source->num_done, num_done, source->results, NETWORK_ORDER);
  }
  source->num_done = num_done;
}
