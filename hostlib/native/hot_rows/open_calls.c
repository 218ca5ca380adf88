// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "open_calls.h"

void open_calls_settle(open_calls_t *calls, int64_t place) {
  for (int64_t entry = calls->head[place]; entry != NO_ENTRY; entry = calls->older[entry]) {
    int64_t call = calls->call[entry];
    if (!--calls->parts[call]) calls->ended[calls->num_ended++] = call;
    calls->free[calls->num_free++] = entry;
  }
  calls->head[place] = NO_ENTRY;
}

void open_calls_move(open_calls_t *calls, int64_t old, int64_t new) {
  int64_t first = calls->head[old];
  if (first == NO_ENTRY) return;
  if (calls->head[new] != NO_ENTRY) {
    int64_t last = first;
    while (calls->older[last] != NO_ENTRY) last = calls->older[last];
    calls->older[last] = calls->head[new];
  }
  calls->head[new] = first;
  calls->head[old] = NO_ENTRY;
}

void open_calls_attach_all(open_calls_t *calls, const int64_t *places, uint64_t count, int64_t call) {
  for (uint64_t i = 0; i < count; i++) open_calls_attach(calls, places[i], call);
}

void open_calls_move_all(open_calls_t *calls, const int64_t *old, const int64_t *new, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) open_calls_move(calls, old[i], new[i]);
}

uint64_t open_calls_list(open_calls_t *calls, const int64_t *places, uint64_t count, bool is_detached, int64_t *found) {
  uint64_t num_found = 0;
  for (uint64_t i = 0; i < count; i++) {
    for (int64_t entry = calls->head[places[i]]; entry != NO_ENTRY; entry = calls->older[entry]) {
      found[num_found++] = calls->call[entry];
      if (is_detached) calls->free[calls->num_free++] = entry;
    }
    if (is_detached) calls->head[places[i]] = NO_ENTRY;
  }
  return num_found;
}
