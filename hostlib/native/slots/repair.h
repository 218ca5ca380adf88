// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a stream sends beside first contributions: repetitions, and flushes of rounds that may close without somebody. It is
// due when results show a loss, and when timers run out (stream_keep_time).
#ifndef SWITCHFOLD_REPAIR_H
#define SWITCHFOLD_REPAIR_H

struct stream;

// Send again at once what later results show to be lost, unless it may be let go. Returns 0 or -errno.
int repair_lost(struct stream *, double now_s);

#endif
