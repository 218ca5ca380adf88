// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// How fast datagrams come, and how long a worker lets them gather before it takes them.
//
// A turn of the thread costs about the same for one datagram as for a hundred, and the kernel joins what has gathered.
// So if cores are busy, the number of turns decides the cost of a sum. In a turn the thread lets a share of the chunks
// under way come in. The rest keeps the links busy until the next turn, here and at the other workers, whose pauses fall
// at other times.
#ifndef SWITCHFOLD_PACE_H
#define SWITCHFOLD_PACE_H

#include <stdbool.h>
#include <stdint.h>

// The mean over a few turns, silences included, as datagrams come in bursts if workers take turns on few cores. The time
// before the first datagram of a tensor does not count: other workers may be late.
typedef struct {
  double longest_s; // 0: never pause
  double datagrams, time_s;
  double taken_s; // of the last turn; 0: nothing was under way since
  bool may_pause;
} pace_t;

pace_t pace_new(double longest_s);

// How long to let datagrams gather, at most `limit_s`; 0: not at all. After a silence there is no pause: the worker waits
// for the first datagram. After a full turn there is none either.
double pace_pause_s(const pace_t *, uint32_t under_way, double limit_s);

// A turn has taken `count` datagrams. With `is_full` it took as many as it could: the others need not gather any more.
void pace_note(pace_t *, uint32_t count, bool is_full, double now_s);
void pace_rest(pace_t *);                               // nothing is under way

#endif
