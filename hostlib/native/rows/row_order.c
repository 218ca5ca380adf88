// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "row_order.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "row_status.h"

#define TAKEN -1

typedef struct {
  const int32_t *touched;
  const uint64_t *ends;
  uint32_t num_keys;
  uint64_t *batch_ends; // of each rank, in `batches`
  uint32_t *batches;    // numbers of the mini-batches of each rank
  uint8_t *in_row;      // of each mini-batch: whether it touches the row
  uint32_t num_in_row;
  // Of the ranks that had no place when the row began, which rise:
  uint32_t num_left;
  int32_t *ranks;
  float *own;    // how many mini-batches the rank has; infinite: the row has taken it
  float *shared; // how many of them touch the row
  int32_t *scores;
  int32_t *places; // of each rank, in these arrays; TAKEN: it is in a row
} search_t;

static uint64_t begin_of(const uint64_t *ends, uint64_t at) { return at ? ends[at - 1] : 0; }

// List the mini-batches of each rank.
static void transpose(search_t *search, uint32_t num_batches) {
  uint64_t *ends = search->batch_ends, end = 0;
  for (uint64_t i = 0; i < begin_of(search->ends, num_batches); i++) ends[search->touched[i]]++;
  for (uint32_t rank = 0; rank < search->num_keys; rank++) {
    uint64_t count = ends[rank];
    ends[rank] = end;
    end += count;
  }
  // Each end is where the rank's next mini-batch goes, and at last the end.
  for (uint32_t batch = 0; batch < num_batches; batch++)
    for (uint64_t i = begin_of(search->ends, batch); i < search->ends[batch]; i++)
      search->batches[ends[search->touched[i]]++] = batch;
}

static void begin_row(search_t *search, uint32_t num_batches) {
  memset(search->in_row, 0, num_batches);
  search->num_in_row = 0;
  search->num_left = 0;
  for (uint32_t rank = 0; rank < search->num_keys; rank++) {
    if (search->places[rank] == TAKEN) continue;
    uint32_t at = search->num_left++;
    search->places[rank] = (int32_t)at;
    search->ranks[at] = (int32_t)rank;
    search->own[at] = (float)(search->batch_ends[rank] - begin_of(search->batch_ends, rank));
    search->shared[at] = 0;
  }
}

// Give a rank the next place of the row.
static int32_t take(search_t *search, uint32_t at) {
  int32_t rank = search->ranks[at];
  search->places[rank] = TAKEN;
  search->own[at] = INFINITY;
  for (uint64_t i = begin_of(search->batch_ends, (uint64_t)rank); i < search->batch_ends[rank]; i++) {
    uint32_t batch = search->batches[i];
    if (search->in_row[batch]) continue;
    search->in_row[batch] = true;
    search->num_in_row++;
    for (uint64_t j = begin_of(search->ends, batch); j < search->ends[batch]; j++) {
      int32_t place = search->places[search->touched[j]];
      if (place != TAKEN) search->shared[place]++;
    }
  }
  return rank;
}

// Return where the rank is whose mini-batches are most similar to those of the row. At least one is not taken.
static uint32_t most_similar(const search_t *search) {
  // Of float32 numbers from 0 on, the larger one has the larger bits.
  union {
    float value;
    int32_t bits;
  } score;
  int32_t best = -1;
  for (uint32_t at = 0; at < search->num_left; at++) {
    float either = search->own[at] + (float)search->num_in_row - search->shared[at];
    score.value = search->shared[at] / (either > 1 ? either : 1);
    int32_t found = search->own[at] == INFINITY ? -1 : score.bits;
    search->scores[at] = found;
    best = found > best ? found : best;
  }
  uint32_t at = 0;
  while (search->scores[at] != best) at++;
  return at;
}

static void fill_rows(search_t *search, uint32_t num_batches, uint32_t keys_per_row, int32_t *order) {
  for (uint32_t done = 0; done < search->num_keys;) {
    begin_row(search, num_batches);
    for (uint32_t i = 0; i < keys_per_row && done < search->num_keys; i++) {
      order[done++] = take(search, i ? most_similar(search) : 0);
    }
  }
}

int row_order(const int32_t *touched, const uint64_t *ends, uint32_t num_batches, uint32_t num_keys, uint32_t keys_per_row,
              int32_t *order) {
  size_t count = (size_t)num_keys + 1; // no malloc of 0 bytes, which may be NULL
  search_t search = {.touched = touched, .ends = ends, .num_keys = num_keys};
  search.batch_ends = calloc(count, sizeof *search.batch_ends);
  search.batches = malloc((begin_of(ends, num_batches) + 1) * sizeof *search.batches);
  search.in_row = malloc((size_t)num_batches + 1);
  search.ranks = malloc(count * sizeof *search.ranks);
  search.own = malloc(count * sizeof *search.own);
  search.shared = malloc(count * sizeof *search.shared);
  search.scores = malloc(count * sizeof *search.scores);
  search.places = calloc(count, sizeof *search.places);
  bool has_memory = search.batch_ends && search.batches && search.in_row && search.ranks && search.own && search.shared &&
                    search.scores && search.places;
  if (has_memory) {
    transpose(&search, num_batches);
    fill_rows(&search, num_batches, keys_per_row, order);
  }
  free(search.batch_ends);
  free(search.batches);
  free(search.in_row);
  free(search.ranks);
  free(search.own);
  free(search.shared);
  free(search.scores);
  free(search.places);
  return has_memory ? ROWS_DONE : ROWS_NO_MEMORY;
}
