// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

// Blocks of fewer bytes share pages with others.
enum { MAPPED_FROM = 64 * 1024, SMALL_PAGE = 4096, HUGE_PAGE = PAGES_HUGE_BYTES };

void *pages_reserve(size_t bytes) {
  if (bytes < MAPPED_FROM) return calloc(1, bytes == 0 ? 1 : bytes);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (bytes < HUGE_PAGE) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
  }
  // Aligned, so that huge pages are possible; the surplus at both ends is unmapped.
  size_t size = (bytes + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE, mapped = size + HUGE_PAGE;
  uint8_t *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  size_t before = (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
  if (before != 0) munmap(memory, before);
  if (mapped - before > size) munmap(memory + before + size, mapped - before - size);
  return memory + before;
}

void pages_release(void *memory, size_t bytes) {
  if (memory == NULL) return;
  if (bytes < MAPPED_FROM) free(memory);
  else munmap(memory, bytes);
}

void pages_prefer_huge(void *memory, size_t bytes) {
  if (bytes < HUGE_PAGE) return;
  madvise(memory, bytes, MADV_HUGEPAGE);
}
