/*
 * The protocol of several workers on one PostgreSQL database, for SPIN. docs/protocol.md explains it.
 *
 * Each atomic step is one SQL statement, or what a worker does between two awaits. Any process can be delayed for any time
 * between two steps, so a worker that is paused and goes on later needs no step of its own: only the loss of its lease is
 * one. The comment before each step names the function or the statement that it stands for.
 *
 * An epoch is only ever compared with the present one. So the model has no numbers: a holder of an epoch has a flag that
 * says whether this is still the epoch of the row, and a new epoch clears the flags of all holders.
 *
 * A step that would change nothing (a poll of an unchanged listing, a beat with nothing to claim) is not taken. So every run
 * ends, and the process Judge looks at the end of each.
 */

/*
 * The bounds, from the command line (proof/protocol.ts): W workers, P projects, and CHANGES of the status of the prompt of
 * the first project; the others only have to be owned and polled. With REPORTS, failures are reported. The number of each
 * fault in a run is 0 if its name is not defined.
 */
#ifndef CRASHES
#define CRASHES 0 /* workers that are killed */
#endif
#ifndef LOSSES
#define LOSSES 0 /* leases that a living worker loses: it was paused or cut off */
#endif
#ifndef LOST
#define LOST 0 /* answers to COMMIT and RESOLVE that are lost */
#endif
#ifndef UNANSWERED
#define UNANSWERED 0 /* answers to other statements that are lost */
#endif
#ifndef REVERTS
#define REVERTS 0 /* commits that a standby does not have when it is promoted */
#endif
#define POSTPONED 1 /* attempts at each failure that find no error_info yet */

#define N (W * P)
#define at(w, p) ((w) * P + (p))
#define NOBODY W
#define changes(p) ((p) == 0 -> CHANGES : 0)
#define status(p) (world[p] & 1) /* what a listing shows: 0 is RUNNING, 1 is FAILED */

/* The service. */
byte world[P]; /* changes of the status so far */

/* The database: rows of `project`, `transition`, `worker` and `failure`. */
byte owner[P];
byte version[P];
bit stored[P]; /* status in `record` */
byte total[P]; /* total in the summary of the project */
byte rows[P]; /* rows of `transition` */
byte newest[P]; /* changes of the world that the last committed listing had seen */
bit lease[W]; /* whether the row of the worker holds (LEASE_HOLDS) */
mtype = { NONE, PENDING, SETTLED };
mtype failure[P] = NONE; /* the newest failure of the project */
byte claimed[P]; /* claimed_by */
byte tries[P];

/* The workers: coordination/lease.ts and share.ts. */
bit dead[W];
byte held[W]; /* 0 no lease, 1 holds, 2 over by the clock, but not noticed yet */
bit own[N];
bit leaving[N]; /* is being given back */
bit context[N]; /* CommitContext: its epoch is the row's */
bit answer[N]; /* epoch in the answer of CLAIM that is under way: it is the row's */
bit sameTerm[W]; /* no lease was lost since CLAIM was sent */
byte memory[N]; /* ListingMemory: 0 none, otherwise status + 1 */
byte known[N]; /* CommitContext.version + 1; 0 undefined; OUTDATED */
#define OUTDATED 255

/* The polls: one at a time for a worker and a project (schedule/scheduler.ts). */
bit polling[N];
bit old[N]; /* the project was dropped since the poll began */
bit epoch[N]; /* epoch under which the poll commits: it is the row's */
bit untold[N]; /* the poll was committed, and its transition was not emitted yet */

/* The reporters. */
byte report[W]; /* project whose failure the worker reports; P none */
bit leaseOfReport[W]; /* the lease under which the failure was handed out goes on */
bit logged[N]; /* FailureReporter.logged */
byte lines[P]; /* lines of the newest failure, at most 2 */
byte settlements[P];

/* The statement that arrives although nobody waits for it any more. */
mtype = { NO_STATEMENT, COMMIT, RESOLVE, CLAIM, RELEASE, JOIN, SETTLE, POSTPONE };
mtype late = NO_STATEMENT;
byte lateWorker, lateProject, lateVersion, lateSeen;
bit lateEpoch;

/* What may still happen. */
byte crashes = CRASHES, losses = LOSSES, lost = LOST, unanswered = UNANSWERED, reverts = REVERTS;
bit reverted[P];
#if REVERTS
byte before; /* newest, before the last commit */
#endif

/* ---- database ---- */

/* nextval('evalwatch.epoch'): no holder has the row's epoch any more. */
inline newEpoch(p) {
  for (e : 0 .. W - 1) {
    context[at(e, p)] = 0; epoch[at(e, p)] = 0; answer[at(e, p)] = 0;
  }
  if :: late != NO_STATEMENT && lateProject == p -> lateEpoch = 0 :: else fi
}

#ifdef NO_EPOCH
#define EPOCH_FITS(is) true
#else
#define EPOCH_FITS(is) (is)
#endif
#ifdef NO_VERSION
#define VERSION_FITS(p, v) true
#else
#define VERSION_FITS(p, v) (version[p] == (v))
#endif

/* COMMIT in store/postgres/sql/poll-commit.ts. The total is computed from the loaded one, which was its version. */
inline commit(w, p, isEpoch, v, seen, isMade) {
  isMade = 0;
  if
  :: EPOCH_FITS(isEpoch) && owner[p] == w && VERSION_FITS(p, v) ->
    isMade = 1;
    assert(isEpoch); /* not by a worker that lost the project */
    assert(stored[p] != (seen & 1)); /* the chain: from is what is stored */
    assert(newest[p] < seen); /* no older listing than the last one */
#if REVERTS
    before = newest[p];
#endif
    stored[p] = seen & 1; newest[p] = seen; rows[p]++; total[p] = v + 1; version[p]++;
    assert(total[p] == rows[p]);
    untold[at(w, p)] = 1;
#if REPORTS
    if
    :: seen & 1 ->
      assert(failure[p] == NONE); /* the bounds allow one failure for a project */
      failure[p] = PENDING
    :: else
    fi
#endif
  :: else
  fi
}

/* RESOLVE in poll-commit.ts: the epoch changes if the commit was not made, and so could still be. */
#ifdef RESOLVE_KEEPS_REVERTED
#define COULD_BE_MADE(p, v) (version[p] == (v))
#else
#define COULD_BE_MADE(p, v) (version[p] <= (v))
#endif
inline renewEpoch(w, p, isEpoch, v, isRenewed) {
  isRenewed = 0;
  if
  :: isEpoch && owner[p] == w && COULD_BE_MADE(p, v) ->
    isRenewed = 1;
#ifndef RESOLVE_KEEPS_EPOCH
    newEpoch(p)
#endif
  :: else
  fi
}

/* JOIN in store/postgres/ownership/coordinator.ts */
inline join(w) {
  for (j : 0 .. P - 1) {
    if :: owner[j] == w -> owner[j] = NOBODY; newEpoch(j) :: else fi
  }
  lease[w] = 1
}

#ifdef ORPHANS_STAY
#define isFree(p) (owner[p] == NOBODY)
#else
#define isFree(p) (owner[p] == NOBODY || !lease[owner[p]])
#endif

/* CLAIM in coordinator.ts, of one project. */
inline claim(w, p) {
  if
  :: isFree(p) && lease[w] ->
#ifndef CLAIM_KEEPS_EPOCH
    newEpoch(p);
#endif
    owner[p] = w; answer[at(w, p)] = 1
  :: else
  fi
}

/* RELEASE in coordinator.ts, of one project. */
inline release(w, p) {
  if :: owner[p] == w -> owner[p] = NOBODY; newEpoch(p) :: else fi
}

/* SETTLE in store/postgres/sql/failures.ts */
inline settle(p) {
  if
#ifdef SETTLE_AGAIN
  :: failure[p] != NONE ->
#else
  :: failure[p] == PENDING ->
#endif
    failure[p] = SETTLED; settlements[p]++;
    assert(settlements[p] == 1)
  :: else
  fi
}

/* POSTPONE in failures.ts */
inline postpone(w, p) {
  if
#ifdef POSTPONE_OF_OTHERS
  :: failure[p] == PENDING ->
#else
  :: failure[p] == PENDING && claimed[p] == w ->
#endif
    claimed[p] = NOBODY
  :: else
  fi
}

#define isClaimable(w, p) \
  (failure[p] == PENDING && lease[w] && (claimed[p] == NOBODY || claimed[p] == w || !lease[claimed[p]]))

#define reports(w, p) (report[w] == p && leaseOfReport[w] && held[w] == 1 && lease[w] && !dead[w])
/*
 * No other worker with a lease reports the failure of the project. A postponement that arrives although nobody waits for it
 * any more can free a failure that its worker has begun to report again: then two can report it.
 */
#ifdef LATE_POSTPONE
#define isAlone(w, p) true
#else
#define isAlone(w, p) \
  (!(w != 0 && reports(0, p)) && !(w != 1 && reports(1, p)) && !(w < W - 1 && W > 2 && reports(W - 1, p)))
#endif

inline keepLate(kind, w, p, isEpoch, v, seen) {
  late = kind; lateWorker = w; lateProject = p; lateEpoch = isEpoch; lateVersion = v; lateSeen = seen
}

inline forgetLate() {
  late = NO_STATEMENT; lateWorker = 0; lateProject = 0; lateVersion = 0; lateSeen = 0; lateEpoch = 0
}

/* ---- a worker ---- */

/* Ownership.disown with Poller.unwatch */
inline disown(i) {
  own[i] = 0; leaving[i] = 0; context[i] = 0; old[i] = polling[i];
  known[i] = 0;
#ifndef STALE_CACHE
  memory[i] = 0
#endif
}

/* lose in coordination/lease.ts, and onLost in worker.ts */
inline lose(w) {
  held[w] = 0; sameTerm[w] = 0; leaseOfReport[w] = 0;
  for (l : 0 .. P - 1) { disown(at(w, l)) }
}

/* isHeld in lease.ts: reads the clock. */
inline readLease(w) {
  if :: held[w] == 2 -> lose(w) :: else fi
}

#if REVERTS
#define isReverted(i, p) (known[i] == OUTDATED || (known[i] != 0 && known[i] != version[p] + 1))
#else
#define isReverted(i, p) false
#endif
#define hasToPoll(i, p) (memory[i] != status(p) + 1 || !context[i] || isReverted(i, p))

/* Commits one project's polls: monitor/poller.ts and store/postgres/commits.ts. */
proctype Poller(byte w; byte p) {
  byte i = at(w, p), seen, v, e;
  bit from, isMade;

idle:
  atomic {
    /* Scheduler and mayPoll. The poll is taken if it changes something here or in the store. */
    !dead[w] && own[i] && held[w] == 1 && (hasToPoll(i, p) || world[p] < changes(p)) ->
    do /* readListings; changes that no listing shows do not matter */
    :: world[p] < changes(p) -> world[p]++
    :: hasToPoll(i, p) || world[p] == changes(p) -> break
    od;
    if
    :: !hasToPoll(i, p) -> goto idle
    :: else
    fi;
    polling[i] = 1; seen = world[p];
    if
    :: memory[i] == (seen & 1) + 1 -> goto flush
    :: else
    fi
  }
  atomic {
    !dead[w] -> /* loadKnown in ownership/owned-projects.ts */
    v = version[p]; from = stored[p];
#if REVERTS
    if
    :: old[i]
    :: !old[i] && (known[i] == 0 || known[i] == v + 1) -> known[i] = v + 1
    :: else -> known[i] = OUTDATED
    fi;
#endif
    if
    :: from == (seen & 1) -> goto flush
    :: else
    fi
  }
  atomic {
    !dead[w] -> /* commit in poller.ts, then commitPoll in owned-projects.ts */
    if
    :: old[i] -> goto done
    :: else -> epoch[i] = context[i]
    fi;
#if REVERTS
    if
    :: known[i] == OUTDATED -> known[i] = 0; memory[i] = 0; goto done
    :: else
    fi;
#endif
#ifdef EMIT_FIRST
    assert(untold[i]); /* only what was committed is told */
    untold[i] = 0
#endif
  }

send:
  atomic {
    if
    :: commit(w, p, epoch[i], v, seen, isMade); goto answered
    :: lost > 0 && !dead[w] -> lost--;
      if
      :: commit(w, p, epoch[i], v, seen, isMade)
      :: true
      :: late == NO_STATEMENT -> keepLate(COMMIT, w, p, epoch[i], v, seen)
      fi;
#ifdef LOST_IS_FAILURE
      memory[i] = 0; goto done
#endif
#ifdef LOST_IS_SUCCESS
      isMade = 1; goto answered
#endif
    fi
  }

resolve:
  atomic { /* resolve and findOut in commits.ts */
    if
    :: renewEpoch(w, p, epoch[i], v, isMade);
      if
      :: isMade -> /* commitUnder again, with the new epoch */
        epoch[i] = 1;
        if :: !old[i] -> context[i] = 1 :: else fi;
        goto send
      :: !isMade && untold[i] -> isMade = 1 /* transition_ids */
      :: else
      fi
    :: lost > 0 && !dead[w] -> lost--;
      if
      :: renewEpoch(w, p, epoch[i], v, isMade)
      :: true
      :: late == NO_STATEMENT -> keepLate(RESOLVE, w, p, epoch[i], v, 0)
      fi;
      goto resolve
    fi
  }

answered:
  atomic {
    !dead[w] ->
    if
    :: isMade -> /* succeeded in commits.ts; updateMemory and emitChanges in poller.ts */
#ifndef EMIT_FIRST
      assert(untold[i] || reverted[p]); /* only what was committed is told, and once */
      untold[i] = 0;
#endif
      if
      :: !old[i] -> memory[i] = (seen & 1) + 1;
#if REVERTS
        known[i] = v + 2
#endif
      :: else
      fi
    :: !isMade && old[i] /* isFromEarlierOwnership */
    :: !isMade && !old[i] && epoch[i] && owner[p] == w -> /* REFUSAL: version */
      memory[i] = 0; known[i] = 0
    :: else -> /* REFUSAL: epoch; Worker.drop */
      disown(i)
    fi;
    goto done
  }

flush:
  atomic {
    !dead[w] -> /* health.add, and writeHealth in owned-projects.ts */
    if
    :: old[i]
    :: !old[i] && !(context[i] && owner[p] == w) -> disown(i)
#if REVERTS
    :: !old[i] && context[i] && owner[p] == w && known[i] == OUTDATED -> known[i] = 0; memory[i] = 0
    :: !old[i] && context[i] && owner[p] == w && known[i] != OUTDATED && known[i] != 0 && known[i] != version[p] + 1 ->
      known[i] = OUTDATED
#endif
    :: else -> memory[i] = (seen & 1) + 1
    fi
  }

done:
  atomic { !dead[w] -> polling[i] = 0; old[i] = 0; epoch[i] = 0; seen = 0; v = 0; from = 0; isMade = 0; e = 0; goto idle }
}

#define counts(what, w) (what[at(w, 0)] + (P > 1 -> what[at(w, P - 1)] : 0))
#define live (lease[0] + lease[1] + (W > 2 -> lease[W - 1] : 0))
/* fairShare in worker.ts */
#define due(workers) ((P + (workers) - 1) / (workers))
#define isStray(w, p) (owner[p] == w && !own[at(w, p)] && !leaving[at(w, p)])
#ifdef NO_STRAYS
#define hasStrays(w) false
#else
#define hasStrays(w) (isStray(w, 0) || (P > 1 && isStray(w, P - 1)))
#endif
#define isBelow(w) (counts(own, w) < due(live))
#define hasFree(w) ((!own[at(w, 0)] && isFree(0)) || (!own[at(w, P - 1)] && isFree(P - 1)))

/* Holds the lease and the share: beat in coordination/worker.ts, share.ts and releases.ts. One connection sends all of it. */
proctype Coordinator(byte w) {
  byte e, j, l, q, most;

idle:
  atomic {
    if
    :: !dead[w] && held[w] == 2 -> lose(w); goto next /* the timer of the lease */
    :: !dead[w] && held[w] == 1 && !lease[w] -> lose(w); goto next /* RENEW finds no lease */
    :: !dead[w] && held[w] == 0 /* renew in lease.ts begins another lease */
    :: !dead[w] && held[w] == 1 && hasStrays(w) -> goto strays /* agree in share.ts */
    :: !dead[w] && held[w] == 1 && counts(own, w) > due(live) -> /* balance in share.ts: what exceeds the share */
      if
      :: own[at(w, 0)] -> own[at(w, 0)] = 0; leaving[at(w, 0)] = 1
      :: P > 1 && own[at(w, P - 1)] -> own[at(w, P - 1)] = 0; leaving[at(w, P - 1)] = 1
      fi;
      goto next
    :: !dead[w] && held[w] == 1 && isBelow(w) && hasFree(w) -> /* balance: what is missing */
      most = due(live) - counts(own, w); sameTerm[w] = 1; goto claiming
    :: !dead[w] && leaving[at(w, 0)] && !polling[at(w, 0)] -> q = 0; goto giving /* releases.ts */
    :: !dead[w] && P > 1 && leaving[at(w, P - 1)] && !polling[at(w, P - 1)] -> q = P - 1; goto giving
    fi
  }

joining:
  atomic {
    if
    :: join(w)
    :: unanswered > 0 && !dead[w] -> unanswered--;
      if
      :: join(w)
      :: true
      :: late == NO_STATEMENT -> keepLate(JOIN, w, P, 0, 0, 0)
      fi;
      goto next
    fi
  }
  atomic { !dead[w] -> /* accept: an answer that comes after the end of the lease does not count */
    if :: lease[w] -> held[w] = 1 :: else fi;
    goto next
  }

strays:
  atomic {
    if
    :: for (q : 0 .. P - 1) { if :: isStray(w, q) -> release(w, q) :: else fi }
    :: unanswered > 0 && !dead[w] -> unanswered--;
      if
      :: for (q : 0 .. P - 1) { if :: isStray(w, q) -> release(w, q) :: else fi }
      :: true
      :: late == NO_STATEMENT ->
        select(q : 0 .. P - 1);
        if :: isStray(w, q) -> keepLate(RELEASE, w, q, 0, 0, 0) :: else fi
      fi
    fi;
    goto next
  }

giving:
  atomic { /* Nothing at this worker uses the project now, so the answer belongs to the same step. */
    if
    :: leaving[at(w, q)] ->
      if
      :: release(w, q); disown(at(w, q))
      :: unanswered > 0 && !dead[w] -> unanswered--;
        if
        :: release(w, q)
        :: true
        :: late == NO_STATEMENT -> keepLate(RELEASE, w, q, 0, 0, 0)
        fi;
        leaving[at(w, q)] = 0; own[at(w, q)] = 1 /* onFailed */
      fi
    :: else
    fi;
    goto next
  }

claiming:
  atomic {
    if
    :: select(q : 0 .. P - 1);
      if :: !own[at(w, q)] -> claim(w, q); most = most - answer[at(w, q)] :: else fi;
      q = (q + 1) % P;
      if :: most > 0 && !own[at(w, q)] -> claim(w, q) :: else fi
    :: unanswered > 0 && !dead[w] -> unanswered--;
      select(q : 0 .. P - 1);
      if
      :: !own[at(w, q)] -> claim(w, q)
      :: true
      :: !own[at(w, q)] && late == NO_STATEMENT -> keepLate(CLAIM, w, q, 0, 0, 0)
      fi;
      for (q : 0 .. P - 1) { answer[at(w, q)] = 0 }
      goto next
    fi
  }
  atomic { !dead[w] -> /* own and Poller.watch */
    for (q : 0 .. P - 1) {
      if
      :: answer[at(w, q)] ->
        answer[at(w, q)] = 0;
        if
        :: sameTerm[w] -> disown(at(w, q)); own[at(w, q)] = 1; context[at(w, q)] = 1
        :: else
        fi
      :: else
      fi
    }
  }

next:
  atomic { sameTerm[w] = 0; e = 0; j = 0; l = 0; q = 0; most = 0; goto idle }
}

/* Reports failures: monitor/failure-reporter.ts. */
proctype Reporter(byte w) {
  byte p, l;

idle:
  atomic {
    if
    :: !dead[w] && held[w] == 1 && isClaimable(w, 0) -> p = 0
    :: !dead[w] && held[w] == 1 && P > 1 && isClaimable(w, P - 1) -> p = P - 1
    fi;
    leaseOfReport[w] = 1 /* check: lease() before the query */
  }
  atomic {
    if
    :: isClaimable(w, p) -> /* CLAIM_PENDING */
#ifndef CLAIM_UNMARKED
      claimed[p] = w;
#endif
      report[w] = p;
      assert(dead[w] || isAlone(w, p)) /* one worker at a time reports a failure */
    :: !isClaimable(w, p) -> goto done
    :: unanswered > 0 && !dead[w] && isClaimable(w, p) -> unanswered--;
      if :: claimed[p] = w :: true fi;
      goto done
    fi
  }
  atomic {
    !dead[w] -> /* report, after the attempt */
    if
    :: logged[at(w, p)] -> goto settling
    :: else
    fi;
    readLease(w);
#ifndef NO_LEASE_CHECK
    if
    :: !leaseOfReport[w] -> goto done
    :: else
    fi;
#endif
    assert(isAlone(w, p));
    if
    :: true
    :: tries[p] < POSTPONED -> tries[p]++; report[w] = P; goto postponing
    fi
  }
#ifdef SETTLE_FIRST
  atomic { settle(p) }
#endif
  atomic { !dead[w] -> /* emit in logAndSettle */
    if :: lines[p] < 2 -> lines[p]++ :: else fi;
    logged[at(w, p)] = 1
  }

settling:
  atomic {
    if
    :: settle(p); logged[at(w, p)] = 0
    :: unanswered > 0 && !dead[w] -> unanswered--;
      if
      :: settle(p)
      :: true
      :: late == NO_STATEMENT -> keepLate(SETTLE, w, p, 0, 0, 0)
      fi
    fi;
    goto done
  }

postponing:
  atomic {
    if
    :: postpone(w, p)
    :: unanswered > 0 && !dead[w] -> unanswered--;
      if
      :: postpone(w, p)
      :: true
#ifdef LATE_POSTPONE
      :: late == NO_STATEMENT -> keepLate(POSTPONE, w, p, 0, 0, 0)
#endif
      fi
    fi
  }

done:
  atomic { !dead[w] -> p = 0; l = 0; report[w] = P; leaseOfReport[w] = 0; goto idle }
}

/* A lease is over by the clock of its worker first, because that counts from before the request (withLease). */
#ifdef OWN_CLOCK
#define isOverHere(w) true
#else
#define isOverHere(w) (held[w] != 1)
#endif
#define loseLease(w) \
  :: atomic { losses > 0 && !dead[w] && held[w] == 1 -> losses--; held[w] = 2 } \
  :: atomic { losses > 0 && !dead[w] && lease[w] && held[w] != 2 && isOverHere(w) -> losses--; lease[w] = 0 } \
  :: atomic { lease[w] && (dead[w] || held[w] == 2) -> lease[w] = 0 }

/* What the service, the clocks and the faults do. */
proctype World() {
  byte e, j, q;
  bit isMade;

  do
  /* kill -9. Workers are alike, so it is always the last that lives. */
  :: atomic { crashes > 0 -> crashes--; dead[W - 1 - crashes] = 1 }
  /* A worker is paused or cut off. */
  loseLease(0)
  loseLease(1)
#if W > 2
  loseLease(2)
#endif
  /* The late statement arrives. */
  :: atomic { late != NO_STATEMENT ->
       if
       :: late == COMMIT -> commit(lateWorker, lateProject, lateEpoch, lateVersion, lateSeen, isMade)
       :: late == RESOLVE -> renewEpoch(lateWorker, lateProject, lateEpoch, lateVersion, isMade)
       :: late == JOIN -> join(lateWorker)
       :: late == CLAIM -> claim(lateWorker, lateProject); answer[at(lateWorker, lateProject)] = 0
       :: late == RELEASE -> release(lateWorker, lateProject)
       :: late == SETTLE -> settle(lateProject)
       :: late == POSTPONE -> postpone(lateWorker, lateProject)
       fi;
       forgetLate();
       isMade = 0; e = 0; j = 0 }
#if REVERTS
  /* A standby without the last commit of the first project is promoted. What is under way to the old primary is void. */
  :: atomic { reverts > 0 && version[0] > 0 && !reverted[0] -> reverts--; reverted[0] = 1;
       version[0]--; rows[0]--; total[0]--; stored[0] = 1 - stored[0]; newest[0] = before;
       for (q : 0 .. W - 1) { untold[at(q, 0)] = 0 }
       forgetLate();
       q = 0 }
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
      assert(owner[p] < W && !dead[owner[p]]); /* nobody's project */
      assert(own[at(owner[p], p)] && context[at(owner[p], p)]); /* its owner does not know */
      assert(memory[at(owner[p], p)] == status(p) + 1); /* it is not polled */
      assert(stored[p] == status(p)); /* the last change is missing */
      assert(total[p] == rows[p]);
      for (w : 0 .. W - 1) {
        assert(dead[w] || !untold[at(w, p)]); /* committed, and never told */
        assert(dead[w] || !polling[at(w, p)])
      }
#if REPORTS
      assert(failure[p] != PENDING); /* never settled */
      assert(failure[p] == NONE || lines[p] > 0); /* settled without a line */
      assert(settlements[p] == (failure[p] == SETTLED))
#endif
    }
  }
}

init {
  byte w, p;
  atomic {
    for (p : 0 .. P - 1) { owner[p] = NOBODY; claimed[p] = NOBODY }
    for (w : 0 .. W - 1) {
      report[w] = P;
      for (p : 0 .. P - 1) { run Poller(w, p) }
      run Coordinator(w);
#if REPORTS
      run Reporter(w)
#endif
    }
    w = 0; p = 0;
    run World();
    run Judge()
  }
}
