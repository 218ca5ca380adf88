// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "pages.h"

#include <stdlib.h>
#include <sys/mman.h>

// Below this, blocks share pages with others.
enum { MAPPED_FROM = 64 * 1024 };

void *pages_reserve(size_t bytes) {
  if (bytes < MAPPED_FROM) return calloc(1, bytes == 0 ? 1 : bytes);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void pages_release(void *memory, size_t bytes) {
  if (memory == NULL) return;
  if (bytes < MAPPED_FROM) free(memory);
  else munmap(memory, bytes);
}
