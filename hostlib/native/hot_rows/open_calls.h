// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of pushes or pulls, and the places in arrays for which they wait. A place may hold parts of several calls: entries,
// in a list from the newest on. All arrays are the caller's.
#ifndef SWITCHFOLD_OPEN_CALLS_H
#define SWITCHFOLD_OPEN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define NO_ENTRY (-1)

typedef struct {
  int64_t *head;     // by place: its newest entry, or NO_ENTRY
  int64_t *call;     // by entry
  int64_t *older;    // by entry: the next of its place, or NO_ENTRY
  int64_t *free;     // entries that are not in use
  int64_t *parts;    // by call: how many are open
  int64_t *ended;    // calls whose last part has ended, for the caller to take; room for all
  int64_t num_free;
  int64_t num_ended;
} open_calls_t;

// Let a call wait for a place, by one part more. There must be a free entry.
static inline void open_calls_attach(open_calls_t *calls, int64_t place, int64_t call) {
  int64_t entry = calls->free[--calls->num_free];
  calls->call[entry] = call;
  calls->older[entry] = calls->head[place];
  calls->head[place] = entry;
  calls->parts[call]++;
}

// End what calls wait for at a place.
void open_calls_settle(open_calls_t *, int64_t place);

// Let the calls of a place wait for another one, besides the calls that this has.
void open_calls_move(open_calls_t *, int64_t old, int64_t new);

// The same for many places.
void open_calls_attach_all(open_calls_t *, const int64_t *places, uint64_t count, int64_t call);
void open_calls_move_all(open_calls_t *, const int64_t *old, const int64_t *new, uint64_t count);

// Write the calls of each entry of some places, and free these entries if they are to be detached. Returns how many.
uint64_t open_calls_list(open_calls_t *, const int64_t *places, uint64_t count, bool is_detached, int64_t *found);

#endif
