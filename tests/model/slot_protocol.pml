/* SPDX-FileCopyrightText: 2026 The Switchfold Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The slot protocol of docs/protocol.md: one slot with its two copies, NUM_WORKERS workers, ROUNDS rounds in each
 * generation, and a network that may lose, duplicate and delay every packet without bound.
 *
 * The network is the worst possible: any packet that was sent may be delivered at any later time, any number of times, or
 * never. So a packet in flight needs no state of its own: (worker, generation, round) was sent if the worker got there.
 *
 * The model keeps the parts of a lane's sum: added[w] counts how often worker w's value was added since the copy was
 * reset, and is_mixed says that a value of another round or generation was added. A sum is right if and only if it is not
 * mixed and added[w] is one for exactly the workers that the result names.
 *
 * Variants, by -D:
 *   ROUND_CHECK=0  SwitchML's rule: a version bit (the round's parity) and bitmaps that clear each other; no round number.
 *   PARTIAL=1      any worker may flush an open round at any time; late contributions get the closed result.
 *   CONTRIBUTIONS_EXPECT=n, FLUSHES_EXPECT=n  the field `expected`, with PARTIAL: the round closes with n workers, and a
 *                  flush is ignored while fewer are in the sum. 0: none, as in version 1 of the wire format.
 *   LIVENESS=1     each worker's own retransmission gets through eventually; check that all rounds end.
 */
#ifndef NUM_WORKERS
#define NUM_WORKERS 3
#endif
#ifndef ROUNDS
#define ROUNDS 4
#endif
#ifndef GENERATIONS
#define GENERATIONS 2
#endif
#ifndef ROUND_CHECK
#define ROUND_CHECK 1
#endif
#ifndef PARTIAL
#define PARTIAL 0
#endif
#ifndef CONTRIBUTIONS_EXPECT
#define CONTRIBUTIONS_EXPECT 0
#endif
#ifndef FLUSHES_EXPECT
#define FLUSHES_EXPECT 0
#endif
#if CONTRIBUTIONS_EXPECT
#define QUORUM CONTRIBUTIONS_EXPECT
#else
#define QUORUM NUM_WORKERS
#endif
#define ALL ((1 << NUM_WORKERS) - 1)
#define COUNT(b) (((b) & 1) + (((b) >> 1) & 1) + (((b) >> 2) & 1) + (((b) >> 3) & 1))
#define KEY(g, r) (((g) - 1) * (ROUNDS + 1) + (r))

typedef copy_t {
  byte generation; /* zero: never used */
  byte round;
  byte bitmap;
  bool is_closed;
  bool is_mixed;
  byte added[NUM_WORKERS]
};
copy_t copies[2];

byte table_generation = 1;           /* of the switch's table entries, set by the controller */
byte worker_generation[NUM_WORKERS]; /* the generation that each worker uses; it follows the controller's at any time */
byte worker_round[NUM_WORKERS];      /* the round each worker has sent and waits for; ROUNDS + 1: finished */

/* The bitmap of the result of each (generation, round); zero: none yet. All results of one key must be the same. */
byte result_bitmap[GENERATIONS * (ROUNDS + 1) + 1];

byte k; /* loop variable inside atomic sections; zero in between */

#define IS_SENT(w, g, r) \
  (worker_generation[w] > g || (worker_generation[w] == g && worker_round[w] >= r))

/* The switch sends the lanes of copy c as the result of (g, r). The assertions find a wrong sum. */
inline emit(c, g, r) {
  assert(!copies[c].is_mixed);
  k = 0;
  do
  :: k < NUM_WORKERS -> assert(copies[c].added[k] == ((copies[c].bitmap >> k) & 1)); k++
  :: else -> break
  od;
  k = 0;
  assert(PARTIAL || copies[c].bitmap == ALL);
  assert(COUNT(copies[c].bitmap) >= QUORUM || COUNT(copies[c].bitmap) >= FLUSHES_EXPECT);
  assert(result_bitmap[KEY(g, r)] == 0 || result_bitmap[KEY(g, r)] == copies[c].bitmap);
  result_bitmap[KEY(g, r)] = copies[c].bitmap
}

inline start_afresh(c, w, g, r) {
  k = 0;
  do
  :: k < NUM_WORKERS -> copies[c].added[k] = 0; k++
  :: else -> break
  od;
  k = 0;
  copies[c].added[w] = 1;
  copies[c].generation = g;
  copies[c].round = r;
  copies[c].is_closed = false;
  copies[c].is_mixed = false
}

inline add(c, w, g, r) {
  if
  :: copies[c].added[w] < 2 -> copies[c].added[w]++
  :: else
  fi;
  if
  :: copies[c].generation != g || copies[c].round != r -> copies[c].is_mixed = true
  :: else
  fi
}

#if ROUND_CHECK
#define IS_NEWER(c, g, r) \
  (g > copies[c].generation || (g == copies[c].generation && r > copies[c].round))
#define IS_SAME(c, g, r) (g == copies[c].generation && r == copies[c].round)

inline receive(c, w, g, r) {
  if
  :: g != table_generation /* the table entry does not match: dropped */
  :: else ->
    if
    :: IS_NEWER(c, g, r) -> start_afresh(c, w, g, r); copies[c].bitmap = 1 << w
    :: IS_SAME(c, g, r) && !copies[c].is_closed && !((copies[c].bitmap >> w) & 1) ->
      add(c, w, g, r);
      copies[c].bitmap = copies[c].bitmap | (1 << w)
    :: else /* retransmission, late or stale */
    fi;
    if
    :: IS_SAME(c, g, r) && (COUNT(copies[c].bitmap) >= QUORUM || copies[c].is_closed) ->
      copies[c].is_closed = true;
      emit(c, g, r)
    :: else
    fi
  fi
}
#else
/* The packet carries no round: only its parity c. */
inline receive(c, w, g, r) {
  if
  :: (copies[c].bitmap >> w) & 1 /* taken for a retransmission */
  :: else ->
    if
    :: copies[c].bitmap == 0 ->
      start_afresh(c, w, g, r);
      copies[c].bitmap = 1 << w
    :: else ->
      add(c, w, g, r);
      copies[c].bitmap = copies[c].bitmap | (1 << w)
    fi;
    copies[1 - c].bitmap = copies[1 - c].bitmap & (ALL ^ (1 << w));
    if
    :: copies[c].bitmap == ALL -> emit(c, g, r)
    :: else
    fi
  fi
}
#endif

/* A flush of (g, r) reaches the switch. It is ignored while fewer workers than it expects are in the sum. */
inline flush(c, g, r) {
  if
  :: g == table_generation && IS_SAME(c, g, r) &&
       (copies[c].is_closed || COUNT(copies[c].bitmap) >= FLUSHES_EXPECT) ->
    copies[c].is_closed = true;
    emit(c, g, r)
  :: else
  fi
}

#define HAS_RESULT(w) (result_bitmap[KEY(worker_generation[w], worker_round[w])] != 0)
#if LIVENESS
/* Fairness is only between processes, so a worker that can go on must not retransmit for ever. */
#define MAY_RETRANSMIT(w) (!HAS_RESULT(w) && worker_generation[w] == table_generation)
#else
#define MAY_RETRANSMIT(w) true
#endif

proctype Worker(byte w) {
  do
  :: atomic { worker_round[w] <= ROUNDS && MAY_RETRANSMIT(w) ->
       /* sends or retransmits, and the packet gets through */
       receive((worker_round[w] & 1), w, worker_generation[w], worker_round[w]) }
  :: atomic { worker_round[w] <= ROUNDS && HAS_RESULT(w) -> worker_round[w]++ }
  :: atomic { worker_generation[w] < table_generation ->
       worker_generation[w] = table_generation; worker_round[w] = 1 }
#if PARTIAL
  :: atomic { worker_round[w] <= ROUNDS ->
       flush((worker_round[w] & 1), worker_generation[w], worker_round[w]) }
#endif
  :: worker_round[w] > ROUNDS && worker_generation[w] == GENERATIONS -> break
  od
}

/* Duplicates and late packets: anything that was ever sent, at any time. */
active proctype Network() {
  byte w, g, r;
  do
  :: atomic {
       select(w : 0 .. NUM_WORKERS - 1);
       select(g : 1 .. GENERATIONS);
       select(r : 1 .. ROUNDS);
       if
       :: IS_SENT(w, g, r) -> receive((r & 1), w, g, r)
       :: else
       fi;
       w = 0; g = 0; r = 0 }
#if LIVENESS
  :: atomic { table_generation == GENERATIONS -> break }
#endif
  od
}

active proctype Controller() {
  do
  :: table_generation < GENERATIONS -> table_generation++
  :: table_generation == GENERATIONS -> break
  od
}

init {
  atomic {
    byte i = 0;
    do
    :: i < NUM_WORKERS -> worker_generation[i] = 1; worker_round[i] = 1; run Worker(i); i++
    :: else -> break
    od;
    i = 0
  }
}

#if LIVENESS
#define HAS_FINISHED(w) (worker_round[w] > ROUNDS && worker_generation[w] == GENERATIONS)
ltl all_rounds_end { <> (HAS_FINISHED(0) && HAS_FINISHED(1) && HAS_FINISHED(2)) }
#endif
