/*
 * How workers share projects on one PostgreSQL database, for SPIN. docs/protocol.md explains it.
 *
 * Each atomic step is one SQL statement, or what a worker does between two awaits. Any process can be delayed for any time
 * between two steps, so a worker that is paused and goes on later needs no step of its own: only the loss of its lease is
 * one.
 *
 * A step that would change nothing (a poll of an unchanged listing, a beat that finds what the worker knows) is not taken.
 * So every run ends, and the process Judge looks at the end of each.
 *
 * Bounds, from the command line (proof/protocol.ts): W workers, P projects, and CHANGES of the status of the prompt of the
 * first project; the others only have to be owned and polled. With REPORTS, failures are reported. The number of each fault
 * in a run is 0 if its name is not defined.
 */
#ifndef CRASHES
#define CRASHES 0 /* workers that are killed */
#endif
#ifndef LOSSES
#define LOSSES 0 /* leases that a living worker loses: it was paused or cut off */
#endif
#ifndef LOST
#define LOST 0 /* answers to statements that are lost */
#endif
#ifndef REVERTS
#define REVERTS 0 /* promotions of a standby that lacks the last change of the first project */
#endif

#define at(w, p) ((w) * P + (p))
#define N (W * P)
#define NOBODY W
#define changes(p) ((p) == 0 -> CHANGES : 0)
#define status(p) (world[p] & 1) /* what a listing shows: 0 is RUNNING, 1 is FAILED */

/* The service: changes of the status so far. */
byte world[P];

/* The database. A token is a random UUID, here the next number: it never comes again. */
mtype = { NONE, PENDING, SETTLED };
typedef Row {
  byte owner;
  byte token;
  bit stored;      /* status of the prompt */
  byte newest;     /* changes of the world that the last committed listing had seen */
  int made;        /* tokens of the commits of which transitions are stored, a bit for each */
  mtype failure = NONE;
  byte failed;     /* token of the commit that found the failure, which is its key */
  byte settlements;
}
Row row[P];
byte last[P];    /* last token that anybody made */
bit lease[W];
#if REVERTS
Row before;      /* the first project before its last change */
bit mayRevert, reverted;
#endif

/* The workers. */
bit dead[W];
byte held[W];    /* 0 no lease, 1 holds, 2 over by the clock, but not noticed yet */
byte mine[N];    /* token of an owned project; 0 none */
byte memory[N];  /* of the listing: 0 none, otherwise status + 1 */
byte given[N];   /* token under which a release was sent, until the list shows that it was made; 0 none */
bit polling[N], committing[N];
bit untold[N];   /* committed, and its transition was not emitted yet */
byte report[W];  /* project whose failure the worker reports; P none */
bit sameLease[W]; /* no lease was lost since the failure was read */
byte lines[P];   /* lines of the newest failure, at most 2 */

/* The statement that arrives although nobody waits for it any more. */
mtype = { NO_STATEMENT, COMMIT, RENEW, CLAIM, RELEASE, SETTLE };
mtype late = NO_STATEMENT;
byte lateWorker, lateProject, lateOld, lateNew, lateSeen;

byte crashes = CRASHES, losses = LOSSES, lost = LOST, reverts = REVERTS;

#if REVERTS
inline keepBefore(p) {
  if
  :: p == 0 && reverts > 0 ->
    before.owner = row[0].owner; before.token = row[0].token; before.stored = row[0].stored;
    before.newest = row[0].newest; before.made = row[0].made; before.failure = row[0].failure;
    before.settlements = row[0].settlements; before.failed = row[0].failed; mayRevert = 1
  :: else
  fi
}
#else
#define keepBefore(p) skip
#endif

/* ---- statements ---- */

#ifdef ANY_TOKEN
#define FITS(p, old) (true)
#else
#define FITS(p, old) (row[p].token == (old))
#endif

/* COMMIT: applies once, and says so again when it is repeated. */
inline commit(w, p, old, new, seen, isMade) {
  isMade = 0;
  if
  :: (row[p].made >> new) & 1 -> isMade = 1
  :: !((row[p].made >> new) & 1) && FITS(p, old) ->
    assert(row[p].owner == w);                 /* not by a worker that lost the project */
    assert(row[p].stored != (seen & 1));       /* the chain: from is what is stored */
    assert(row[p].newest < seen);              /* no older listing than the last one */
    keepBefore(p);
    row[p].token = new; row[p].stored = seen & 1; row[p].newest = seen;
    row[p].made = row[p].made | (1 << new);
    untold[at(w, p)] = 1; isMade = 1;
#if REPORTS
    if
    :: seen & 1 -> assert(row[p].failure == NONE); row[p].failure = PENDING; row[p].failed = new; lines[p] = 0
    :: else
    fi
#endif
  :: else
  fi
}

#ifdef ORPHANS_STAY
#define isFree(p) (row[p].owner == NOBODY)
#else
#define isFree(p) (row[p].owner == NOBODY || !lease[row[p].owner])
#endif

inline claim(w, p) {
  if
  :: isFree(p) && lease[w] ->
    keepBefore(p);
    row[p].owner = w;
#ifndef CLAIM_KEEPS_TOKEN
    last[p]++; row[p].token = last[p]
#endif
  :: else
  fi
}

inline release(w, p, old) {
  if
  :: row[p].token == old && row[p].owner == w ->
    keepBefore(p);
#ifndef RELEASE_KEEPS_OWNER
    row[p].owner = NOBODY;
#endif
    last[p]++; row[p].token = last[p]
  :: else
  fi
}

#ifdef SETTLE_ANY
#define IS(p, key) (true)
#else
#define IS(p, key) (row[p].failed == (key))
#endif
inline settle(p, key) {
  if
#ifdef SETTLE_AGAIN
  :: row[p].failure != NONE && IS(p, key) ->
#else
  :: row[p].failure == PENDING && IS(p, key) ->
#endif
    row[p].failure = SETTLED; row[p].settlements++;
    assert(row[p].settlements == 1)
  :: else
  fi
}

inline keepLate(kind, w, p, old, new, seen) {
  late = kind; lateWorker = w; lateProject = p; lateOld = old; lateNew = new; lateSeen = seen
}

inline forgetLate() {
  late = NO_STATEMENT; lateWorker = 0; lateProject = 0; lateOld = 0; lateNew = 0; lateSeen = 0
}

/* ---- a worker ---- */

inline drop(i) {
  mine[i] = 0;
#ifndef STALE_MEMORY
  memory[i] = 0
#endif
}

inline readLease(w) {
  if :: held[w] == 2 -> held[w] = 0; sameLease[w] = 0 :: else fi
}

#define hasToPoll(i, p) (memory[i] != status(p) + 1 || mine[i] != row[p].token)

proctype Poller(byte w; byte p) {
  byte i = at(w, p), seen, old, new;
  bit from, isMade;

idle:
  atomic {
    !dead[w] && mine[i] && held[w] == 1 && (hasToPoll(i, p) || world[p] < changes(p)) ->
    do
    :: world[p] < changes(p) -> world[p]++
    :: hasToPoll(i, p) || world[p] == changes(p) -> break
    od;
    if :: !hasToPoll(i, p) -> goto idle :: else fi;
    polling[i] = 1; seen = world[p]; old = mine[i];
    if :: memory[i] == (seen & 1) + 1 -> goto flush :: else fi
  }
  atomic {
    !dead[w] -> /* loads what is known under the token */
    if
    :: row[p].token != old -> goto refused
    :: else -> from = row[p].stored
    fi;
    if :: from == (seen & 1) -> goto flush :: else fi
  }
  atomic {
    !dead[w] ->
    if
    :: mine[i] != old -> goto done /* the poll is one of an earlier ownership */
    :: else -> last[p]++; new = last[p]; committing[i] = 1
    fi;
#ifdef EMIT_FIRST
    assert(untold[i]); untold[i] = 0
#endif
  }

send:
  atomic {
    if
    :: commit(w, p, old, new, seen, isMade)
    :: lost > 0 && !dead[w] -> lost--;
      if
      :: commit(w, p, old, new, seen, isMade)
      :: true
      :: late == NO_STATEMENT -> keepLate(COMMIT, w, p, old, new, seen)
      fi;
      isMade = 0;
#ifdef LOST_IS_FAILURE
      if :: mine[i] == old -> drop(i) :: else fi;
      goto done
#endif
#ifdef LOST_IS_SUCCESS
      isMade = 1; goto answered
#endif
#ifdef REPEAT_WITH_NEW
      last[p]++; new = last[p];
#endif
      goto send /* the same statement again */
    fi
  }

answered:
  atomic {
    !dead[w] ->
    committing[i] = 0;
    if
    :: isMade ->
#ifndef EMIT_FIRST
#if REVERTS
      assert(untold[i] || reverted);
#else
      assert(untold[i]); /* only what was committed is told, and once */
#endif
      untold[i] = 0;
#endif
      if :: mine[i] == old -> mine[i] = new; memory[i] = (seen & 1) + 1 :: else fi;
      goto done
    :: else
    fi
  }

refused:
  atomic { !dead[w] -> if :: mine[i] == old -> drop(i) :: else fi; goto done }

flush:
  atomic {
    !dead[w] -> /* writes the health under the token */
    if
    :: mine[i] != old
    :: mine[i] == old && row[p].token != old -> drop(i)
    :: else -> memory[i] = (seen & 1) + 1
    fi
  }

done:
  atomic {
    !dead[w] ->
    polling[i] = 0; committing[i] = 0; seen = 0; old = 0; new = 0; from = 0; isMade = 0; goto idle
  }
}

#define live (lease[0] + lease[1] + (W > 2 -> lease[W - 1] : 0))
#define due ((P + live - 1) / live)
#define owned(w) ((row[0].owner == w) + (P > 1 && row[P - 1].owner == w))
#define isIdle(w, p) (mine[at(w, p)] && !polling[at(w, p)] && report[w] != p)
#define mayGive(w) (live > 0 && owned(w) > due && (isIdle(w, 0) || (P > 1 && isIdle(w, P - 1))))
#define givesAgain(w, p) (given[at(w, p)] && row[p].owner == w && row[p].token == given[at(w, p)])
#define mustGive(w) (givesAgain(w, 0) || (P > 1 && givesAgain(w, P - 1)))
#define mayTake(w) (live > 0 && owned(w) < due && (isFree(0) || isFree(P - 1)))
#define listed(w, p) (row[p].owner == w -> row[p].token : 0)
#define differs(w, p) (listed(w, p) != mine[at(w, p)] && !committing[at(w, p)])

/* The beat: renews the lease, claims what is missing, adopts what the database says, and releases what is idle and exceeds the share. */
proctype Beat(byte w) {
  byte p, list[P], was[P];

idle:
  atomic {
    if
    :: !dead[w] && held[w] != 1
    :: !dead[w] && !lease[w]
    :: !dead[w] && held[w] == 1 && (mayGive(w) || mustGive(w) || mayTake(w) || differs(w, 0) || differs(w, P - 1))
    fi;
    readLease(w)
  }
  atomic {
    if
    :: lease[w] = 1
    :: lost > 0 && !dead[w] -> lost--;
      if
      :: lease[w] = 1
      :: true
      :: late == NO_STATEMENT -> keepLate(RENEW, w, 0, 0, 0, 0)
      fi;
      goto idle
    fi
  }
  atomic { !dead[w] -> /* an answer that comes after the end of the lease does not count */
    if :: lease[w] && held[w] != 2 -> held[w] = 1 :: else -> held[w] = 0; sameLease[w] = 0; goto idle fi
  }
  atomic {
    if
    :: mayTake(w) ->
      if :: isFree(0) -> p = 0 :: isFree(P - 1) -> p = P - 1 fi;
      if
      :: claim(w, p)
      :: lost > 0 && !dead[w] -> lost--;
        if
        :: claim(w, p)
        :: true
        :: late == NO_STATEMENT -> keepLate(CLAIM, w, p, 0, 0, 0)
        fi;
        p = 0; goto idle
      fi
    :: else
    fi;
    p = 0
  }
  atomic { !dead[w] ->
    for (p : 0 .. P - 1) { list[p] = listed(w, p); was[p] = mine[at(w, p)] }
    p = 0
  }
  atomic { !dead[w] ->
    for (p : 0 .. P - 1) {
      if
      :: committing[at(w, p)] || mine[at(w, p)] != was[p] /* newer than the list; without this, a poll more */
      :: else ->
        if
#ifndef ADOPTS_GIVEN
        :: list[p] && list[p] == given[at(w, p)]
        :: list[p] != mine[at(w, p)] && (!list[p] || list[p] != given[at(w, p)]) ->
#else
        :: list[p] != mine[at(w, p)] ->
#endif
          drop(at(w, p)); mine[at(w, p)] = list[p]
        :: else
        fi
      fi;
      if :: list[p] != given[at(w, p)] -> given[at(w, p)] = 0 :: else fi;
      list[p] = 0; was[p] = 0
    }
    p = 0
  }
  atomic {
    if
    :: (mustGive(w) || mayGive(w)) && !dead[w] ->
      if
      :: givesAgain(w, 0) -> p = 0
      :: P > 1 && givesAgain(w, P - 1) -> p = P - 1
      :: !mustGive(w) && isIdle(w, 0) -> p = 0; given[at(w, 0)] = mine[at(w, 0)]
      :: !mustGive(w) && isIdle(w, P - 1) -> p = P - 1; given[at(w, P - 1)] = mine[at(w, P - 1)]
      fi;
      drop(at(w, p));
      if
      :: release(w, p, given[at(w, p)])
      :: lost > 0 && !dead[w] -> lost--;
        if
        :: release(w, p, given[at(w, p)])
        :: true
        :: late == NO_STATEMENT -> keepLate(RELEASE, w, p, given[at(w, p)], 0, 0)
        fi
      fi
    :: dead[w] || !(mustGive(w) || mayGive(w))
    fi;
    p = 0; goto idle
  }
}

#define reports(w, p) (report[w] == p && sameLease[w] && held[w] == 1 && lease[w] && !dead[w])
#define isAlone(w, p) \
  (!(w != 0 && reports(0, p)) && !(w != 1 && reports(1, p)) && !(w < W - 1 && W > 2 && reports(W - 1, p)))

/* Reports the failures of the projects that the worker owns. */
proctype Reporter(byte w) {
  byte key;

idle:
  atomic {
    !dead[w] && held[w] == 1 && mine[at(w, 0)] && row[0].failure == PENDING &&
    row[0].owner == w && row[0].token == mine[at(w, 0)] ->
    report[w] = 0; sameLease[w] = 1; key = row[0].failed;
    assert(isAlone(w, 0))
  }
  atomic {
    !dead[w] ->
    readLease(w);
#ifndef NO_LEASE_CHECK
    if :: !sameLease[w] -> goto done :: else fi;
#endif
    assert(isAlone(w, 0));
#ifdef SETTLE_FIRST
    settle(0, key);
  }
  atomic { !dead[w] ->
#endif
    if :: lines[0] < 2 && row[0].failed == key -> lines[0]++ :: else fi
  }

settling:
  atomic {
    if
    :: settle(0, key)
    :: lost > 0 && !dead[w] -> lost--;
      if
      :: settle(0, key)
      :: true
      :: late == NO_STATEMENT -> keepLate(SETTLE, w, 0, key, 0, 0)
      fi;
      goto settling
    fi
  }

done:
  atomic { !dead[w] -> key = 0; report[w] = P; sameLease[w] = 0; goto idle }
}

/* A lease is over by the clock of its worker first, because that counts from before the request. */
#define loseLease(w) \
  :: atomic { losses > 0 && !dead[w] && held[w] == 1 -> losses--; held[w] = 2 } \
  :: atomic { losses > 0 && !dead[w] && lease[w] && held[w] == 0 -> losses--; lease[w] = 0 } \
  :: atomic { lease[w] && (dead[w] || held[w] == 2) -> lease[w] = 0 }

/* What the service, the clocks and the faults do. */
proctype World() {
  byte q;
  bit isMade;

  do
  /* kill -9. Workers are alike, so it is always the last that lives. */
  :: atomic { crashes > 0 -> crashes--; dead[W - 1 - crashes] = 1; report[W - 1 - crashes] = P }
  loseLease(0)
  loseLease(1)
#if W > 2
  loseLease(2)
#endif
  :: atomic { late != NO_STATEMENT ->
       if
       :: late == COMMIT -> commit(lateWorker, lateProject, lateOld, lateNew, lateSeen, isMade)
       :: late == RENEW -> lease[lateWorker] = 1
       :: late == CLAIM -> claim(lateWorker, lateProject)
       :: late == RELEASE -> release(lateWorker, lateProject, lateOld)
       :: late == SETTLE -> settle(lateProject, lateOld)
       fi;
       forgetLate(); isMade = 0 }
#if REVERTS
  /* A standby without the last change of the first project is promoted. What is under way to the old primary is void. */
  :: atomic { reverts > 0 && mayRevert -> reverts--; reverted = 1; mayRevert = 0;
       row[0].owner = before.owner; row[0].token = before.token; row[0].stored = before.stored;
       row[0].newest = before.newest; row[0].made = before.made; row[0].failure = before.failure;
       row[0].settlements = before.settlements; row[0].failed = before.failed;
       for (q : 0 .. W - 1) { untold[at(q, 0)] = 0 }
       forgetLate(); q = 0 }
#endif
  od
}

/* The end of a run: nothing more happens. */
proctype Judge() {
  byte p, w;

  timeout ->
  atomic {
    for (w : 0 .. W - 1) { assert(dead[w] || held[w] == 1) }
    for (p : 0 .. P - 1) {
      assert(row[p].owner < W && !dead[row[p].owner]); /* nobody's project */
      assert(mine[at(row[p].owner, p)] == row[p].token); /* its owner does not know */
      assert(memory[at(row[p].owner, p)] == status(p) + 1); /* it is not polled */
      assert(row[p].stored == status(p)); /* the last change is missing */
      for (w : 0 .. W - 1) {
        assert(dead[w] || !untold[at(w, p)]); /* committed, and never told */
        assert(dead[w] || !polling[at(w, p)])
      }
#if REPORTS
      assert(row[p].failure != PENDING); /* never settled */
      assert(row[p].failure == NONE || lines[p] > 0); /* settled without a line */
      assert(row[p].settlements == (row[p].failure == SETTLED))
#endif
    }
    for (w : 0 .. W - 1) { assert(dead[w] || owned(w) <= due) }
  }
}

init {
  byte w, p;
  atomic {
    for (p : 0 .. P - 1) { row[p].owner = NOBODY; row[p].token = 1; last[p] = 1 }
    for (w : 0 .. W - 1) {
      report[w] = P;
      for (p : 0 .. P - 1) { run Poller(w, p) }
      run Beat(w);
#if REPORTS
      run Reporter(w)
#endif
    }
    w = 0; p = 0;
    run World();
    run Judge()
  }
}
