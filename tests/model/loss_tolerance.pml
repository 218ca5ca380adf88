/* SPDX-FileCopyrightText: 2026 The Switchfold Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sums that may lack a bounded share, over one switch: who pays for what a round lacks, what workers do that miss a
 * result, and whether all tensors complete in the end. tolerance.h, closing.c and stream.c are the code that this models.
 *
 * NUM_WORKERS workers sum TENSORS tensors of LENGTH chunks each over SLOTS slots with two copies each. Chunk k of the
 * sequence has slot k % SLOTS, and waits for the result of chunk k - SLOTS. A tensor may lack TOTAL contributions, and
 * LIMIT of any one worker.
 *
 * A packet may be lost, doubled, and late without bound: what was sent arrives at any later time or never. Only packets
 * about chunks without result are there, since the round number makes the others harmless (slot_protocol.pml). Results
 * and notices can be asked for again as long as the copy is the same, or newer for ever; a flush is sent once, so it may
 * be lost for good. When a worker pays, and which of the two that may, is left open: at any time.
 *
 * Every step changes the state, and none is undone: chunks get sent, contributions arrive, rounds close, results are
 * taken. So no run is endless, and a run that ends without all tensors complete has workers that wait for each other.
 * The checker finds those as invalid end states.
 *
 * Variants, by -D; each of these leaves out one of the rules, if 0:
 *   DEBITS          who flushes pays.
 *   SPLITS          each worker has its part of TOTAL and LIMIT, not the whole.
 *   EXPECTS         the switch ignores a flush while fewer workers are in the sum than it expects.
 *   KEEPS           of what was paid, only what was not missing comes back with the result.
 *   COUNTS_OPEN     chunks that were paid for and have no result count as missing any one worker.
 *   GOES_ON         who has missed a result goes on to contribute.
 *   STAYS_WHOLE     who has missed a result of a tensor pays for no chunk whose end may let others miss one of it.
 *   NEXT_TOO        that holds also for chunks of the next tensor, which have the slots of this one's last chunks.
 *   TURNS           only a chunk's closer and the one behind it pay.
 * And: STRICT=1 the first tensor may lack nothing, so who misses a result of it waits until another worker has it;
 * SYNC=1 a worker sends a tensor once it has the one before; LIVENESS=1 check that all tensors complete, with the
 * workers' steps weakly fair.
 */
#ifndef NUM_WORKERS
#define NUM_WORKERS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef TENSORS
#define TENSORS 1
#endif
#ifndef LENGTH
#define LENGTH 6
#endif
#ifndef TOTAL
#define TOTAL 2
#endif
#ifndef LIMIT
#define LIMIT 0 /* none */
#endif
#ifndef DEBITS
#define DEBITS 1
#endif
#ifndef SPLITS
#define SPLITS 1
#endif
#ifndef EXPECTS
#define EXPECTS 1
#endif
#ifndef KEEPS
#define KEEPS 1
#endif
#ifndef COUNTS_OPEN
#define COUNTS_OPEN 1
#endif
#ifndef GOES_ON
#define GOES_ON 1
#endif
#ifndef STAYS_WHOLE
#define STAYS_WHOLE 1
#endif
#ifndef NEXT_TOO
#define NEXT_TOO 1
#endif
#ifndef STRICT
#define STRICT 0
#endif
#ifndef TURNS
#define TURNS 1
#endif
#ifndef SYNC
#define SYNC 0
#endif

#define CHUNKS (TENSORS * LENGTH)
#define ALL ((1 << NUM_WORKERS) - 1)
#define COUNT(b) (((b) & 1) + (((b) >> 1) & 1) + (((b) >> 2) & 1) + (((b) >> 3) & 1))
#define PART(total, w) ((total) / NUM_WORKERS + ((w) < (total) % NUM_WORKERS))
#define TENSOR(k) ((k) / LENGTH)
#define COPY(k) (2 * ((k) % SLOTS) + (((k) / SLOTS) & 1))
#define AT(w, k) ((w) * SLOTS + (k) % SLOTS) /* a worker's slot of a chunk */
#define OF(w, k) ((w) * TENSORS + TENSOR(k)) /* a worker's part of a chunk's tensor */

/* The switch. Chunk 0 means none: chunks count from 1 here. */
byte copy_chunk[2 * SLOTS];
byte copy_bitmap[2 * SLOTS];
bool is_closed[2 * SLOTS];

/* The workers' streams. All chunks below `base` are done, and the one behind it, if `is_ahead`. */
byte next[NUM_WORKERS];
byte base[NUM_WORKERS];
bool is_ahead[NUM_WORKERS];
byte completed[NUM_WORKERS];  /* tensors, in their order */
byte has_missed[NUM_WORKERS]; /* bitmap of tensors */
byte missed_end[NUM_WORKERS]; /* end of the last tensor of which it has missed a result */

/* What workers may let go, and have paid. */
byte left[NUM_WORKERS * TENSORS];
byte paid[NUM_WORKERS * SLOTS];
byte flushed[NUM_WORKERS * SLOTS]; /* the most paid of any flush under way */
#if LIMIT
byte open[NUM_WORKERS * TENSORS];
byte missing[NUM_WORKERS * TENSORS * NUM_WORKERS];
#endif

/* The workers in each chunk's result; zero: none yet, or taken by all. */
byte result[CHUNKS];
byte lacking[TENSORS];
#if LIMIT
byte lacking_of[TENSORS * NUM_WORKERS];
#endif

byte i, sum; /* variables inside atomic sections; zero in between */

#define AWAITS(w, k) ((k) < next[w] && (k) >= base[w] && !(is_ahead[w] && (k) == base[w] + 1))
#define IS_DONE(w, k) ((k) < base[w] || (is_ahead[w] && (k) == base[w] + 1))

/* Whether some worker can give others the results of a tensor. */
#define IS_SERVED_BY(v, t) (completed[v] > (t))
#if NUM_WORKERS == 2
#define SOME_HAS(t) (IS_SERVED_BY(0, t) || IS_SERVED_BY(1, t))
#else
#define SOME_HAS(t) (IS_SERVED_BY(0, t) || IS_SERVED_BY(1, t) || IS_SERVED_BY(2, t))
#endif
#define IS_STRICT(k) (STRICT && TENSOR(k) == 0)

/* The round of chunk k ends with the workers that are in its copy. The bounds hold before, or never. */
inline close_round(k) {
  is_closed[COPY(k)] = true;
  assert(result[k] == 0);
  result[k] = copy_bitmap[COPY(k)];
  i = 0; sum = 0;
  do
  :: i < NUM_WORKERS ->
    if
    :: AWAITS(i, k) -> sum = sum + paid[AT(i, k)]
    :: else
    fi;
    flushed[AT(i, k)] = 0; /* it can change nothing any more */
    i++
  :: else -> break
  od;
  assert(COUNT(result[k]) + sum >= NUM_WORKERS); /* it lacks no more than was paid for */
  lacking[TENSOR(k)] = lacking[TENSOR(k)] + NUM_WORKERS - COUNT(result[k]);
  assert(lacking[TENSOR(k)] <= (IS_STRICT(k) -> 0 : TOTAL));
#if LIMIT
  i = 0;
  do
  :: i < NUM_WORKERS ->
    lacking_of[TENSOR(k) * NUM_WORKERS + i] =
      lacking_of[TENSOR(k) * NUM_WORKERS + i] + 1 - ((result[k] >> i) & 1);
    assert(lacking_of[TENSOR(k) * NUM_WORKERS + i] <= LIMIT);
    i++
  :: else -> break
  od;
#endif
  i = 0; sum = 0
}

#define IS_NEW(k) (copy_chunk[COPY(k)] < (k) + 1)
#define IS_SAME(k) (copy_chunk[COPY(k)] == (k) + 1)
#define IS_PAST(k) (copy_chunk[COPY(k)] > (k) + 1)

/* Whether worker w's contribution to chunk k would change the copy. */
#define IS_WANTED(w, k) \
  (IS_NEW(k) || (IS_SAME(k) && !is_closed[COPY(k)] && !((copy_bitmap[COPY(k)] >> w) & 1)))

inline contribute(w, k) {
  if
  :: IS_NEW(k) ->
    assert(copy_chunk[COPY(k)] == 0 || is_closed[COPY(k)]);
    copy_chunk[COPY(k)] = k + 1;
    copy_bitmap[COPY(k)] = 0;
    is_closed[COPY(k)] = false
  :: else
  fi;
  copy_bitmap[COPY(k)] = copy_bitmap[COPY(k)] | (1 << w);
  if
  :: copy_bitmap[COPY(k)] == ALL -> close_round(k)
  :: else
  fi
}

#define HEARS_FLUSH(w, k) \
  (flushed[AT(w, k)] && IS_SAME(k) && !is_closed[COPY(k)] && \
   (!EXPECTS || COUNT(copy_bitmap[COPY(k)]) >= NUM_WORKERS - flushed[AT(w, k)]))

#define TURN(w, k) ((w + NUM_WORKERS - (k) % NUM_WORKERS) % NUM_WORKERS)
#define MAY_PAY(w, k) \
  ((!TURNS || TURN(w, k) <= 1) && paid[AT(w, k)] + 1 < NUM_WORKERS && left[OF(w, k)] && \
   (!STAYS_WHOLE || !missed_end[w] || (k) >= missed_end[w] + NEXT_TOO * SLOTS))

#if LIMIT
#define LIMIT_OF(w) (SPLITS -> PART(LIMIT, w) : LIMIT)
/* The most chunks with a result that lack one worker; what this worker knows. */
inline most_missing(w, k) {
  i = 0; sum = 0;
  do
  :: i < NUM_WORKERS ->
    if
    :: missing[OF(w, k) * NUM_WORKERS + i] > sum -> sum = missing[OF(w, k) * NUM_WORKERS + i]
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0
}
#endif

/* Pay for one more contribution, if that breaks no bound. The flush may be lost, for good. */
inline pay(w, k) {
#if LIMIT
  most_missing(w, k);
  if
  :: paid[AT(w, k)] == 0 && sum + COUNTS_OPEN * open[OF(w, k)] >= LIMIT_OF(w) -> sum = 0; goto refused
  :: else -> sum = 0
  fi;
  if
  :: paid[AT(w, k)] == 0 -> open[OF(w, k)]++
  :: else
  fi;
#endif
  if
  :: DEBITS -> left[OF(w, k)]--
  :: else
  fi;
  paid[AT(w, k)]++;
  if
  :: flushed[AT(w, k)] = (is_closed[COPY(k)] && IS_SAME(k) -> 0 : paid[AT(w, k)])
  :: true /* lost */
  fi
}

/* Worker w counts chunk k as done; of what it has paid, `absent` workers may have been missing. */
inline settle(w, k, absent) {
  if
  :: paid[AT(w, k)] ->
    if
    :: !KEEPS -> left[OF(w, k)] = left[OF(w, k)] + DEBITS * paid[AT(w, k)]
    :: KEEPS && paid[AT(w, k)] > COUNT(absent) ->
      left[OF(w, k)] = left[OF(w, k)] + DEBITS * (paid[AT(w, k)] - COUNT(absent))
    :: else
    fi;
#if LIMIT
    open[OF(w, k)]--;
    i = 0;
    do
    :: i < NUM_WORKERS ->
      missing[OF(w, k) * NUM_WORKERS + i] = missing[OF(w, k) * NUM_WORKERS + i] + (((absent) >> i) & 1);
      i++
    :: else -> break
    od;
    i = 0;
#endif
    paid[AT(w, k)] = 0
  :: else
  fi;
  flushed[AT(w, k)] = 0;
  if
  :: k == base[w] -> base[w] = base[w] + 1 + is_ahead[w]; is_ahead[w] = false
  :: else -> is_ahead[w] = true
  fi;
  /* Nobody looks at a result again that all have done with. */
  i = 0; sum = 0;
  do
  :: i < NUM_WORKERS -> sum = sum + IS_DONE(i, k); i++
  :: else -> break
  od;
  if
  :: sum == NUM_WORKERS -> result[k] = 0
  :: else
  fi;
  i = 0; sum = 0
}

/* Worker w's chunk at `base` (d = 0) or the one behind it (d = 1). */
proctype Chunk(byte w, d) {
  byte k;
  do
  :: atomic { AWAITS(w, base[w] + d) && IS_WANTED(w, base[w] + d) ->
       k = base[w] + d; contribute(w, k); k = 0 }
  :: atomic { AWAITS(w, base[w] + d) && MAY_PAY(w, base[w] + d) ->
       k = base[w] + d; pay(w, k);
refused: k = 0 }
  :: atomic { AWAITS(w, base[w] + d) && HEARS_FLUSH(w, base[w] + d) ->
       k = base[w] + d; close_round(k); k = 0 }
  :: atomic { AWAITS(w, base[w] + d) && result[base[w] + d] ->
       k = base[w] + d;
       assert(!IS_SAME(k) || copy_bitmap[COPY(k)] == result[k]); /* a replay is the same */
       settle(w, k, (ALL & ~result[k])); k = 0 }
  :: atomic { AWAITS(w, base[w] + d) && IS_PAST(base[w] + d) && (!IS_STRICT(base[w] + d) || SOME_HAS(0)) ->
       k = base[w] + d; /* a notice: the result is gone */
       has_missed[w] = has_missed[w] | (1 << TENSOR(k));
       if
       :: !IS_STRICT(k) -> missed_end[w] = (TENSOR(k) + 1) * LENGTH
       :: else
       fi;
       settle(w, k, ALL); k = 0 }
  :: base[w] == CHUNKS -> break
  od
}

#define MAY_SEND(w) \
  (next[w] < CHUNKS && next[w] < base[w] + SLOTS && (!SYNC || TENSOR(next[w]) <= completed[w]) && \
   (GOES_ON || !has_missed[w]))

proctype Worker(byte w) {
  do
  :: atomic { MAY_SEND(w) -> next[w]++ }
  :: atomic { completed[w] < TENSORS && base[w] >= (completed[w] + 1) * LENGTH &&
       (!((has_missed[w] >> completed[w]) & 1) || SOME_HAS(completed[w])) ->
       completed[w]++ } /* by the results that it has, or by those of another worker that is complete */
  :: completed[w] == TENSORS -> break
  od
}

init {
  atomic {
    byte w = 0, t;
    do
    :: w < NUM_WORKERS ->
      t = 0;
      do
      :: t < TENSORS -> left[w * TENSORS + t] = (SPLITS -> PART(TOTAL, w) : TOTAL) * !(STRICT && t == 0); t++
      :: else -> break
      od;
      run Worker(w);
      run Chunk(w, 0);
#if SLOTS > 1
      run Chunk(w, 1);
#endif
      w++
    :: else -> break
    od;
    w = 0; t = 0
  }
}

#ifdef LIVENESS
#if NUM_WORKERS == 2
ltl all_complete { <> (completed[0] == TENSORS && completed[1] == TENSORS) }
#else
ltl all_complete { <> (completed[0] == TENSORS && completed[1] == TENSORS && completed[2] == TENSORS) }
#endif
#endif
