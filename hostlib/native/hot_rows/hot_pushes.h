// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker's pushes to the hot rows of a server, until the server has decided their rounds (docs/protocol.md, "Hot rows").
// What happens with every push is here; what changes all rows, and what goes by TCP, is in pushes.py, on the same arrays.
//
// A row has three places, one after the other: two for pushes in undecided rounds, by the round's parity, and one for
// gradients that wait for such a place. Times are in seconds, of any clock that does not jump.
#ifndef SWITCHFOLD_HOT_PUSHES_H
#define SWITCHFOLD_HOT_PUSHES_H

#include "hot_cells.h"
#include "hot_packets.h"
#include "open_calls.h"
#include "row_map.h"

#define PLACES 3
#define WAITING 2 // the place of gradients that wait
#define DECIDE_TICKS 3
#define MOST_RENAMES 2

// The use of a place.
typedef enum {
  PLACE_FREE,
  PLACE_SENT,      // by a push that is sent again until the switch has it; or by gradients that wait
  PLACE_QUIET,     // by a push that the switch has, or that met a cold row: it is not sent again
  PLACE_OVER,      // by a push whose round is over at the switch: it is not flushed, either
  PLACE_ABANDONED, // by the name of a push for which nobody waits; the place holds zeros
} place_use_t;

// Places or rows, each once. There is room for all.
typedef struct {
  int64_t *at;
  int64_t count;
} place_list_t;

typedef struct {
  const row_map_t *map;
  hot_packets_t *packets;
  open_calls_t *calls; // of the places, with a free entry for each row
  double flush_s;      // from a push to its first tick
  double next_s;       // when a tick has something to do
  uint32_t bit;        // of this worker in bitmaps
  // By row:
  int64_t *next;         // the lowest round that is not decided
  bool *is_ahead;        // whether the one after it is
  double *cold_until_s;  // until then, gradients go by TCP
  uint64_t *stamps;      // which call has touched it last
  int64_t *targets;      // the place to which that call adds
  // By place:
  float *held;           // lanes of the row; zeros where nothing waits
  uint8_t *use;          // place_use_t
  int64_t *round;
  double *due_s;         // of the next tick
  int8_t *ticks;
  int8_t *renames;       // how often the push's round was decided without it
  // What a call leaves to the caller:
  place_list_t unfit;    // places of pushes that were not sent: some lanes are too large
  place_list_t late;     // freed places whose pushes must go by TCP
  place_list_t asked;    // places whose rounds the server should decide
  place_list_t cold;     // rows that the switch does not have
  place_list_t touched;  // rows of the decisions
  uint64_t stamp;        // of this call
} hot_pushes_t;

// Push gradients of cells, or let them wait; the call waits for their decisions. Cell i has the gradient at position
// `positions`[i], of the table's width. Gradients need no alignment. Leaves `unfit`.
void hot_pushes_add(hot_pushes_t *, const hot_cells_t *, const int64_t *cells, const int64_t *positions, uint64_t count,
                    const uint8_t *gradients, int64_t call, double now_s);

// Send again what places hold.
void hot_pushes_send(hot_pushes_t *, const int64_t *places, uint64_t count);

// Forget what the last call has left.
void hot_pushes_begin(hot_pushes_t *);

// Take a RESULT or a NOTICE without COLD: it says what the switch has.
void hot_pushes_take_result(hot_pushes_t *, const uint8_t *datagram);

// Take a NOTICE with COLD. Leaves `cold`.
void hot_pushes_take_cold(hot_pushes_t *, const uint8_t *datagram);

// Take the payload of DECISIONS. Returns false at a round too far ahead, and goes no further. Leaves `late` and
// `touched`, or else pushes what waits at the rows of `touched`, and leaves `unfit`.
bool hot_pushes_decide(hot_pushes_t *, const uint8_t *decisions, uint64_t count, double now_s);

// Free places whose pushes were counted.
void hot_pushes_settle(hot_pushes_t *, const int64_t *places, uint64_t count);

// Free places whose rounds were decided without their pushes, which wait for other rounds. Leaves `late`.
void hot_pushes_rename(hot_pushes_t *, const int64_t *places, uint64_t count, double now_s);

// Push what waits at rows, as far as they have a place for it now. Leaves `unfit`.
void hot_pushes_push_waiting(hot_pushes_t *, const int64_t *rows, uint64_t count, double now_s);

// Push again and flush, where it is time. Leaves `asked`.
void hot_pushes_tick(hot_pushes_t *, double now_s);

// For the modules of pushes:

static inline float *hot_pushes_held(const hot_pushes_t *pushes, int64_t place) {
  return pushes->held + (size_t)place * pushes->map->num_lanes;
}

static inline void place_list_add(place_list_t *list, int64_t place) { list->at[list->count++] = place; }

// Whether the call touches a row for the first time.
static inline bool hot_pushes_touch(hot_pushes_t *pushes, int64_t row) {
  bool is_first = pushes->stamps[row] != pushes->stamp;
  pushes->stamps[row] = pushes->stamp;
  return is_first;
}

// The place of the first round of a row that is neither used nor decided, and the round; or -1.
int64_t hot_pushes_choose(const hot_pushes_t *, int64_t row, int64_t *round);

// Push what a place holds, in a round; the calls are attached already.
void hot_pushes_push(hot_pushes_t *, int64_t place, int64_t round, int8_t renames, double now_s);

#endif
