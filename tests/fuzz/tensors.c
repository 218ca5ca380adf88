// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "tensors.h"

#include <stdlib.h>
#include <string.h>

#include "exact_tensor.h"
#include "random.h"

#define MOST_CHUNKS 24u
#define VALUE_LIMIT (1 << 28) // four workers' sums stay in int32

// Those of `data`.
static const uint32_t number_bytes[] = {[VALUES_INT32] = 4,   [VALUES_FLOAT16] = 2, [VALUES_FLOAT32] = 4,
                                        [VALUES_FLOAT64] = 8, [VALUES_READY] = 4,   [VALUES_LIMBS] = 0,
                                        [VALUES_INT32_REVERSED] = 4, [VALUES_FLOAT32_ORDERED] = 4,
                                        [VALUES_FLOAT32_REVERSED] = 4};

// Arrays have exactly the size that source.h asks for, so that the sanitizer sees what goes beyond.
static void part_init(tensor_t *tensor, part_t *part, operation_t operation, uint32_t values_per_packet, bool is_first) {
  uint32_t bytes = number_bytes[tensor->kind], slots = tensor->num_chunks * values_per_packet;
  bool is_reversed = tensor->kind == VALUES_INT32_REVERSED;
  bool is_integer = tensor->kind == VALUES_INT32 || tensor->kind == VALUES_READY || is_reversed;
  bool is_exact = tensor->kind == VALUES_LIMBS;
  bool has_factors = tensor->kind >= VALUES_FLOAT16 && tensor->kind <= VALUES_FLOAT64;
  uint16_t *contributors = malloc(tensor->num_chunks * sizeof(uint16_t));
  part->data = malloc((size_t)tensor->num_values * bytes);
  for (uint32_t i = 0; i < tensor->num_values * bytes; i++) ((uint8_t *)part->data)[i] = (uint8_t)draw(256);
  for (uint32_t i = 0; is_integer && i < tensor->num_values; i++) {
    int32_t value = (int32_t)draw(2 * VALUE_LIMIT) - VALUE_LIMIT, *sum = &tensor->expected[i];
    if (tensor->kind == VALUES_READY) store32((uint8_t *)part->data + 4 * (size_t)i, (uint32_t)value);
    else ((int32_t *)part->data)[i] = value;
    if (is_reversed) value = ~value;
    if (operation == AGGREGATE_ADD) *sum += value;
    else if (is_first || value > *sum) *sum = value;
  }
  part->factors = calloc(tensor->num_chunks, sizeof(double));
  for (uint32_t i = 0; i < tensor->num_chunks; i++) {
    if (tensor->kind == VALUES_FLOAT64) ((double *)part->factors)[i] = 1;
    else ((float *)part->factors)[i] = 1;
  }
  part->source = (source_t){
      .tensor_id = tensor->tensor_id,
      .num_chunks = tensor->num_chunks,
      .num_values = tensor->num_values,
      .values = tensor->kind,
      .num_ready = tensor->kind == VALUES_READY ? 0 : tensor->num_chunks,
      .data = part->data,
      .forward = has_factors ? part->factors : NULL,
      .backward = has_factors ? part->factors : NULL,
      .output = tensor->kind == VALUES_READY || is_exact ? NULL : calloc(slots, bytes),
      .results = tensor->kind == VALUES_READY || is_exact ? calloc(slots, VALUE_BYTES) : NULL,
      .exact = is_exact ? exact_part(&tensor->exact, tensor->num_chunks, contributors, tensor->expected) : NULL,
      .contributors = contributors,
      .is_maximum = operation == AGGREGATE_MAX,
  };
  for (uint32_t i = 0; i < tensor->num_chunks; i++) contributors[i] = UNTOUCHED;
}

// Numbers as integers only: others may be too large for the conversion, which is the caller's business.
static void quieten(tensor_t *tensor, part_t *part) {
  for (uint32_t i = 0; i < tensor->num_values; i++) {
    if (tensor->kind == VALUES_FLOAT32) ((float *)part->data)[i] = (float)((int)draw(4096) - 2048) / 2;
    if (tensor->kind == VALUES_FLOAT64) ((double *)part->data)[i] = (double)((int)draw(4096) - 2048) / 2;
    if (tensor->kind == VALUES_FLOAT16) ((uint16_t *)part->data)[i] &= 0xbbff; // no infinity, no NaN
  }
}

void tensor_init(tensor_t *tensor, operation_t operation, uint64_t start, uint32_t tensor_id, uint32_t num_workers,
                 uint32_t values_per_packet, bool is_verified) {
  uint32_t num_chunks = between(1, MOST_CHUNKS);
  exact_t exact = {0};
  values_t kind = draw(2) ? VALUES_INT32 : VALUES_READY;
  if (is_verified && operation == AGGREGATE_ADD && draw(2)) kind = VALUES_LIMBS;
  if (is_verified && operation == AGGREGATE_MAX && draw(2)) kind = VALUES_INT32_REVERSED;
  if (!is_verified) kind = (values_t)draw(VALUES_FLOAT32_REVERSED + 1);
  if (kind > VALUES_LIMBS) operation = AGGREGATE_MAX; // their sums mean nothing, and leave int32
  if (kind == VALUES_LIMBS) num_chunks = exact_draw(&exact, values_per_packet, MOST_CHUNKS);
  *tensor = (tensor_t){
      .start = start,
      .tensor_id = tensor_id,
      .num_chunks = num_chunks,
      .num_values = kind == VALUES_LIMBS ? num_chunks * values_per_packet
                                         : (num_chunks - 1) * values_per_packet + between(1, values_per_packet),
      .kind = kind,
      .exact = exact,
      .expected = calloc((size_t)num_chunks * values_per_packet, sizeof(int32_t)),
  };
  for (uint32_t i = 0; i < num_workers; i++) {
    part_init(tensor, &tensor->parts[i], operation, values_per_packet, i == 0);
    quieten(tensor, &tensor->parts[i]);
  }
}

void tensor_close(tensor_t *tensor, uint32_t num_workers) {
  for (uint32_t i = 0; i < num_workers; i++) {
    part_t *part = &tensor->parts[i];
    free(part->data);
    free(part->factors);
    free(part->source.output);
    free(part->source.results);
    free(part->source.contributors);
    exact_part_free(part->source.exact);
  }
  free((void *)tensor->exact.groups);
  free(tensor->expected);
}

bool tensor_is_right(const tensor_t *tensor, uint32_t worker, uint32_t values_per_packet) {
  const source_t *source = &tensor->parts[worker].source;
  for (uint32_t i = 0; i < tensor->num_chunks * values_per_packet; i++) {
    int32_t got = source->results ? (int32_t)load32(source->results + 4 * (size_t)i) : ((const int32_t *)source->output)[i];
    if (tensor->kind == VALUES_INT32_REVERSED) got = ~got;
    if (got != tensor->expected[i]) return false;
  }
  return !source->exact || exact_is_right(source->exact, tensor->num_chunks, tensor->expected);
}

uint32_t tensor_touched(const tensor_t *tensor, uint32_t worker) {
  const uint16_t *contributors = tensor->parts[worker].source.contributors;
  uint32_t count = 0;
  for (uint32_t i = 0; i < tensor->num_chunks; i++) count += contributors[i] != UNTOUCHED;
  return count;
}

uint32_t tensor_in_a_row(const tensor_t *tensor, uint32_t worker) {
  const uint16_t *contributors = tensor->parts[worker].source.contributors;
  uint32_t count = 0;
  while (count < tensor->num_chunks && contributors[count] != UNTOUCHED) count++;
  return count;
}
