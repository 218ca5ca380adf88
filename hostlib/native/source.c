// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <string.h>

#include "header.h"
#include "quantization.h"

static uint64_t first_of(uint32_t chunk, uint32_t values_per_packet) { return (uint64_t)chunk * values_per_packet; }

// Numbers of a chunk, which are fewer than a packet's values only in the last one.
static uint32_t numbers_in(const source_t *source, uint32_t chunk, uint32_t values_per_packet) {
  uint64_t left = source->num_values - first_of(chunk, values_per_packet);
  return left < values_per_packet ? (uint32_t)left : values_per_packet;
}

static float factor32(const void *factors, uint32_t chunk) { return ((const float *)factors)[chunk]; }

static double factor64(const void *factors, uint32_t chunk) { return ((const double *)factors)[chunk]; }

void source_fill(const source_t *source, uint32_t chunk, uint8_t *values, uint32_t values_per_packet) {
  uint32_t count = numbers_in(source, chunk, values_per_packet);
  uint64_t first = first_of(chunk, values_per_packet);
  uint8_t *end = values + (size_t)VALUE_BYTES * count;
  memset(end, 0, (size_t)VALUE_BYTES * (values_per_packet - count));
  // A factor of 0 stands for zeros, also where the numbers are not finite.
  switch ((values_t)source->values) {
  case VALUES_LIMBS: exact_fill(source->exact, chunk, values, true); return;
  case VALUES_READY: memcpy(values, (const uint8_t *)source->data + VALUE_BYTES * first, (size_t)VALUE_BYTES * count); return;
  case VALUES_INT32: int32_to_wire((const int32_t *)source->data + first, values, count); return;
  case VALUES_FLOAT16:
    if (factor32(source->forward, chunk) == 0) break;
    float16_to_wire((const uint16_t *)source->data + first, factor32(source->forward, chunk), values, count);
    return;
  case VALUES_FLOAT32:
    if (factor32(source->forward, chunk) == 0) break;
    float32_to_wire((const float *)source->data + first, factor32(source->forward, chunk), values, count);
    return;
  case VALUES_FLOAT64:
    if (factor64(source->forward, chunk) == 0) break;
    float64_to_wire((const double *)source->data + first, factor64(source->forward, chunk), values, count);
    return;
  }
  memset(values, 0, (size_t)VALUE_BYTES * count);
}

void source_keep(source_t *source, uint32_t chunk, const uint8_t *values, uint16_t contributors,
                 uint32_t values_per_packet) {
  uint64_t first = first_of(chunk, values_per_packet);
  uint32_t divisor = source->is_mean ? contributors : 1;
  source->contributors[chunk] = contributors;
  if (source->results) {
    memcpy(source->results + VALUE_BYTES * first, values, (size_t)VALUE_BYTES * values_per_packet);
  }
  switch ((values_t)source->values) {
  case VALUES_READY:
  case VALUES_LIMBS: return;
  case VALUES_INT32: int32_from_wire(values, (int32_t *)source->output + first, values_per_packet); return;
  case VALUES_FLOAT16:
    float16_from_wire(values, (float)divisor, factor32(source->backward, chunk), (uint16_t *)source->output + first,
                      values_per_packet);
    return;
  case VALUES_FLOAT32:
    float32_from_wire(values, (float)divisor, factor32(source->backward, chunk), (float *)source->output + first,
                      values_per_packet);
    return;
  case VALUES_FLOAT64:
    float64_from_wire(values, divisor, factor64(source->backward, chunk), (double *)source->output + first,
                      values_per_packet);
    return;
  }
}

void source_advance(source_t *source, uint32_t num_done) {
  if (source->values == VALUES_LIMBS && !source->is_abandoned) {
    exact_round(source->exact, source->num_done, num_done, source->results, true);
  }
  source->num_done = num_done;
}
