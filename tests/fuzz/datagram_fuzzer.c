// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// datagram_fuzzer faithful|hostile SCHEDULES SEED: runs the schedules of SEED and the seeds that follow, under the
// sanitizers. Status 0: every invariant held. The sanitizers choose other statuses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

int main(int count, char **arguments) {
  if (count != 4 || (strcmp(arguments[1], "faithful") != 0 && strcmp(arguments[1], "hostile") != 0)) {
    fprintf(stderr, "usage: %s faithful|hostile SCHEDULES SEED\n", arguments[0]);
    return 2;
  }
  bool is_hostile = strcmp(arguments[1], "hostile") == 0;
  uint64_t schedules = strtoull(arguments[2], NULL, 10), seed = strtoull(arguments[3], NULL, 10);
  totals_t totals = {0};
  for (uint64_t i = 0; i < schedules; i++) {
    if (!schedule_run(seed + i, is_hostile, &totals)) return 1;
  }
  printf("%llu schedules, %llu datagrams: %llu damaged, %llu messages of several, %llu results, %llu refused, %llu blocks, "
         "%llu dropped, %llu sent again\n",
         (unsigned long long)schedules, (unsigned long long)totals.datagrams, (unsigned long long)totals.damaged,
         (unsigned long long)totals.joined, (unsigned long long)totals.results, (unsigned long long)totals.refused,
         (unsigned long long)totals.blocks, (unsigned long long)totals.dropped, (unsigned long long)totals.again);
  return 0;
}
