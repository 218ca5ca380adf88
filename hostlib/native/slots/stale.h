// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Results that a worker does without: it keeps old values in their place.
//
// A worker may let a result go only if it knows that the round is over. Otherwise the round may wait for its contribution,
// which may be what was lost. Later results do not show that: whoever has the result of chunk k may send chunk k + SLOTS in
// the same slot, but a result of that chunk needs this worker's contribution, too, and that one waits for chunk k.
//
// So workers tell each other. Each contribution states of eight earlier chunks whether their rounds are over, as its sender
// has their results, or knows by such a statement. It states so in the header's exponent, which a switch echoes from the
// contribution that closes a round. So a result shows what its last contributor knows. A worker's own statements tell it
// nothing, as it waits for no round that it knows to be over.
//
// A late chunk waits for statements, as long as later chunks are to be sent and the slot is not needed. It is let go when
// one shows that its round is over. Else it is sent again. That saves packets: no contribution goes up again, and no result
// comes down again. A worker that is the last to contribute to most chunks hears little, and repairs more.
#ifndef SWITCHFOLD_STALE_H
#define SWITCHFOLD_STALE_H

#include <stdbool.h>
#include <stdint.h>

#include "slot.h"

struct stream;

typedef struct {
  slot_t **aside; // those that wait for a statement, in any order
  uint32_t num_aside;
  double alone_share; // of late chunks: those of which this worker lost the result, and no contribution was lost; smoothed
} stale_t;

typedef enum { STALE_REPAIR, STALE_WAIT, STALE_KEEP } stale_remedy_t;

// Returns false without memory.
bool stale_init(stale_t *, uint32_t slot_count);
void stale_close(stale_t *);

// How many chunks may be in flight, of a window.
uint32_t stale_window(const struct stream *, uint32_t window);

// What the contribution of the chunk at a place of the sequence states.
uint8_t stale_statement(const struct stream *, uint64_t place);

// A result has come for a slot.
void stale_note_result(struct stream *, const slot_t *, uint8_t statement);

// A late chunk is done: whether this worker had lost its result, and no contribution was lost.
void stale_learn(struct stream *, bool is_alone);

// What to do about a late chunk. WAIT and KEEP take one of the results that its tensor may do without, and WAIT sets the
// slot's time. With `is_shown_late`, later results show a loss.
stale_remedy_t stale_remedy(struct stream *, slot_t *, double now_s, bool is_shown_late);

// Write the slots to `out` that wait and whose rounds are over, and return how many. It looks at those that wait, and at
// no other.
uint32_t stale_due(struct stream *, slot_t **out);

// Note that the old values of a slot's chunk are kept, for which a result was taken.
void stale_keep(struct stream *, slot_t *);

// Give back what was taken for a slot.
void stale_stop(struct stream *, slot_t *);

#endif
