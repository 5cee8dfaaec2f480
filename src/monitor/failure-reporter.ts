import { causeOf } from '../domain/cause.ts';
import type { Settlement } from '../domain/failure.ts';
import { createAttempt } from './error-info-attempt.ts';
import { StoreError } from './errors.ts';
import type { MonitorEvent, Observer } from './events.ts';
import type { Clock } from './ports/clock.ts';
import type { EvaluationService } from './ports/service.ts';
import type { Shutdown } from './ports/shutdown.ts';
import type { FailureKey, PendingFailure, Store } from './ports/store.ts';
import { createRepeatedCheck } from './repeated-check.ts';

/** Interval of the queries for due failures while some are being reported, and of the tries to query without a lease. */
const CHECK_INTERVAL_MS = 1000;
/** Its maximum: another process can leave failures of which this one is not told, and the clock can be set. */
const MAX_INTERVAL_MS = 10_000;
/** Pause after an error of the store. */
const STORE_PAUSE_MS = 5000;

export interface FailureReporter {
  /** Reports due failures now and from now on. */
  start(): void;
  /** Checks for due failures now; to be called when there are new ones. */
  wake(): void;
  /** Starts no further reports; resolves when the running ones have ended. */
  stop(): Promise<void>;
  /** Tries to report each pending failure of these projects once, due or not. @throws {StoreError} */
  drain(projects: readonly string[]): Promise<void>;
}

export interface FailureReporterOptions {
  readonly service: Pick<EvaluationService, 'getErrorInfo'>;
  readonly store: Pick<Store, 'pendingFailures' | 'settleFailure' | 'postponeFailure'>;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Maximum number of concurrent reports for one project. */
  readonly parallelPerProject: () => number;
  readonly shutdown: Shutdown;
  /**
   * With several workers: the current lease, under which the store hands out failures; undefined without one. Another
   * worker may hold failures that were handed out under an earlier lease.
   */
  readonly lease?: () => number | undefined;
}

/**
 * Creates the reporter, which logs each failure with its error_info at least once, even after a crash: it logs the line
 * first and then settles the row (docs/specification.md#pending-failures).
 */
export function createFailureReporter(options: FailureReporterOptions): FailureReporter {
  const { service, store, clock, emit, parallelPerProject, shutdown, lease = () => 0 } = options;
  const attempt = createAttempt({ service, clock, emit, shutdown });
  const running = new Map<string, { readonly project: string; readonly work: Promise<void> }>();
  /** Settlements that were logged but could not be stored. */
  const logged = new Map<
    string,
    { readonly failure: FailureKey; readonly settlement: Settlement }
  >();
  /** When postponed failures are due, epoch ms. */
  const nextTries = new Set<number>();
  /** Reports that ended since the last check began, whose result may still list them as pending. */
  let ended = new Set<string>();
  let pausedUntil = Number.NEGATIVE_INFINITY;

  const checks = createRepeatedCheck({ check, intervalMs, clock, signal: shutdown.waits });

  function intervalMs(): number {
    if (running.size > 0 || isPaused() || lease() === undefined) return CHECK_INTERVAL_MS;
    let untilTry = MAX_INTERVAL_MS;
    for (const at of nextTries) untilTry = Math.min(untilTry, at - clock.now());
    return Math.max(CHECK_INTERVAL_MS, untilTry);
  }

  function isPaused(): boolean {
    return clock.monotonic() < pausedUntil;
  }

  async function check(): Promise<void> {
    if (isPaused()) return;
    const heldLease = lease();
    if (heldLease === undefined) return;
    ended = new Set();
    try {
      const dueAt = clock.now();
      const due = await store.pendingFailures({ dueAt, limitPerProject: parallelPerProject() });
      for (const at of nextTries) if (at <= dueAt) nextTries.delete(at);
      for (const failure of due) if (!ended.has(keyOf(failure))) startReport(failure, heldLease);
    } catch (error) {
      pauseAfter(error);
    }
  }

  function startReport(failure: PendingFailure, heldLease: number): void {
    const { project } = failure;
    const key = keyOf(failure);
    if (running.has(key)) return;
    const work = report(failure, heldLease)
      .catch(pauseAfter)
      .finally(() => {
        running.delete(key);
        ended.add(key);
        if (!running.values().some((other) => other.project === project)) checks.wake();
      });
    running.set(key, { project, work });
  }

  /** Tries one failure once. A shutdown meanwhile, or the end of the lease, leaves it pending. */
  async function report(failure: PendingFailure, heldLease: number): Promise<void> {
    const known = logged.get(keyOf(failure));
    if (known !== undefined) return await settle(failure, known.settlement);
    const outcome = await attempt(failure);
    if (outcome === undefined || lease() !== heldLease) return;
    if ('settlement' in outcome) await logAndSettle(failure, outcome.settlement);
    else {
      nextTries.add(outcome.tries.nextAt);
      await store.postponeFailure(failure, outcome.tries);
    }
  }

  async function logAndSettle(failure: PendingFailure, settlement: Settlement): Promise<void> {
    emit(promptFailed(failure, settlement));
    logged.set(keyOf(failure), { failure, settlement });
    await settle(failure, settlement);
  }

  async function settle(failure: FailureKey, settlement: Settlement): Promise<void> {
    await store.settleFailure(failure, settlement, clock.now());
    logged.delete(keyOf(failure));
  }

  /** Makes a last attempt to store logged settlements; otherwise the next process logs these lines again. */
  async function settleLogged(): Promise<void> {
    try {
      await Promise.all(
        logged.values().map(({ failure, settlement }) => settle(failure, settlement)),
      );
    } catch (error) {
      pauseAfter(error);
    }
  }

  /** Pauses the reporter. The store itself emits its failures. */
  function pauseAfter(error: unknown): void {
    if (!(error instanceof StoreError)) throw error;
    pausedUntil = clock.monotonic() + STORE_PAUSE_MS;
  }

  return {
    wake: () => checks.wake(),
    start: () => checks.start(),
    stop: async () => {
      await checks.stop();
      await Promise.all(running.values().map(({ work }) => work));
      await settleLogged();
    },
    drain: async (projects) => {
      const heldLease = lease();
      if (heldLease === undefined) return;
      const pending = await store.pendingFailures({
        projects,
        limitPerProject: Number.MAX_SAFE_INTEGER,
      });
      await forEachOf(pending, parallelPerProject(), async (failure) => {
        if (!shutdown.waits.aborted) await report(failure, heldLease);
      });
    },
  };
}

/** Calls `work` for each item, for at most `limit` of them at the same time. */
async function forEachOf<Item>(
  items: Iterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = Iterator.from(items);
  const reportNext = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: limit }, reportNext));
}

function keyOf({ transitionId, foundAt, promptId }: FailureKey): string {
  return `${transitionId} ${foundAt} ${promptId}`;
}

function promptFailed(
  { project, transitionId, promptId, promptName }: PendingFailure,
  settlement: Settlement,
): MonitorEvent {
  return {
    type: 'prompt.failed',
    project,
    transitionId,
    promptId,
    promptName,
    errorInfo: settlement.errorInfo ?? null,
    errorMsgTruncated: settlement.errorInfo !== undefined && settlement.errorMsgTruncated,
    isUnusual: settlement.errorInfo && settlement.isUnusual,
    reason: settlement.reason,
    cause: causeOf(settlement.errorInfo).id,
  };
}
