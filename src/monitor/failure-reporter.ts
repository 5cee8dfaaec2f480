import { causeOf } from '../domain/cause.ts';
import {
  afterFailedTry,
  afterRemoval,
  type FailedTry,
  type Settled,
  type Settlement,
  type TryOutcome,
} from '../domain/failure.ts';
import { ApiError, StoreError } from './errors.ts';
import type { Observer } from './events.ts';
import type { Clock, Timer } from './ports/clock.ts';
import type { EvaluationService, Shutdown } from './ports/service.ts';
import type { FailureKey, PendingFailure, Store } from './ports/store.ts';

/** Interval of the queries for due failures while some are being reported, and of the tries to query without a lease. */
const CHECK_INTERVAL_MS = 1000;
/** Its maximum: another process can leave failures of which this one is not told, and the clock can be set. */
const MAX_INTERVAL_MS = 10_000;
/** Pause after an error of the store. */
const STORE_PAUSE_MS = 5000;

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
   * worker may report failures that were handed out under an earlier lease.
   */
  readonly lease?: () => number | undefined;
}

/**
 * Logs each failure with its error_info at least once, even after a crash: it logs the line first and then settles the row
 * (docs/specification.md#pending-failures).
 */
export class FailureReporter {
  readonly #options: FailureReporterOptions;
  readonly #lease: () => number | undefined;
  #isStarted = false;
  #nextCheck: Timer | undefined;
  #checking: Promise<void> | undefined;
  #checkAgain = false;
  #pausedUntil = -Infinity;
  readonly #running = new Map<string, { readonly project: string; readonly work: Promise<void> }>();
  /** Reports that ended since the last check began, whose result may still list them as pending. */
  #ended = new Set<string>();
  /** Settlements whose line was logged, but which may not be stored. */
  readonly #logged = new Map<
    string,
    { readonly failure: PendingFailure; readonly settled: Settled }
  >();
  /** When postponed failures are due, epoch ms. */
  readonly #nextTries = new Set<number>();

  constructor(options: FailureReporterOptions) {
    this.#options = options;
    this.#lease = options.lease ?? (() => 0);
  }

  /** Reports due failures now and from now on. */
  start(): void {
    this.#isStarted = true;
    this.wake();
  }

  /** Checks for due failures now, or once more after the check that runs; to be called when there are new ones. */
  wake(): void {
    const { clock, shutdown } = this.#options;
    if (!this.#isStarted || shutdown.waits.aborted) return;
    if (this.#checking !== undefined) {
      this.#checkAgain = true;
      return;
    }
    this.#checkAgain = false;
    this.#nextCheck?.cancel();
    this.#checking = this.#check().finally(() => {
      this.#checking = undefined;
      if (this.#checkAgain) this.wake();
      else if (this.#isStarted) {
        // Asking for the lease can find it lost, which has woken another check meanwhile.
        this.#nextCheck?.cancel();
        this.#nextCheck = clock.timeout(this.#intervalMs(), () => this.wake());
      }
    });
  }

  /** Whether a failure of the project is being reported, or its line is written and its settlement not stored. */
  isReporting(project: string): boolean {
    const reports = this.#running.values().map((report) => report.project);
    const unstored = this.#logged.values().map((logged) => logged.failure.project);
    return [...reports, ...unstored].includes(project);
  }

  /** Starts no further reports; resolves when the running ones have ended. */
  async stop(): Promise<void> {
    this.#isStarted = false;
    this.#nextCheck?.cancel();
    await this.#checking;
    await Promise.all(this.#running.values().map(({ work }) => work));
    // A last attempt: what is not stored, the next process logs again.
    await this.#settleLogged().catch((error: unknown) => this.#pauseAfter(error));
  }

  /** Tries to report each pending failure of these projects once, due or not. @throws {StoreError} */
  async drain(projects: readonly string[]): Promise<void> {
    const { store, parallelPerProject, shutdown } = this.#options;
    const lease = this.#lease();
    if (lease === undefined) return;
    await this.#settleLogged();
    const limitPerProject = Number.MAX_SAFE_INTEGER;
    const pending = (await store.pendingFailures({ projects, limitPerProject })).values();
    const reportNext = async () => {
      for (const failure of pending) {
        if (!shutdown.waits.aborted) await this.#report(failure, lease);
      }
    };
    await Promise.all(Array.from({ length: parallelPerProject() }, reportNext));
  }

  /** Returns the time from the end of a check to the next one, ms. */
  #intervalMs(): number {
    if (this.#running.size > 0 || this.#isPaused() || this.#lease() === undefined) {
      return CHECK_INTERVAL_MS;
    }
    let untilTry = MAX_INTERVAL_MS;
    const now = this.#options.clock.now();
    for (const at of this.#nextTries) untilTry = Math.min(untilTry, at - now);
    return Math.max(CHECK_INTERVAL_MS, untilTry);
  }

  async #check(): Promise<void> {
    const { store, clock, parallelPerProject } = this.#options;
    const lease = this.#lease();
    if (this.#isPaused() || lease === undefined) return;
    this.#ended = new Set();
    try {
      await this.#settleLogged();
      const dueAt = clock.now();
      const due = await store.pendingFailures({ dueAt, limitPerProject: parallelPerProject() });
      for (const at of this.#nextTries) if (at <= dueAt) this.#nextTries.delete(at);
      for (const failure of due) this.#startReport(failure, lease);
    } catch (error) {
      this.#pauseAfter(error);
    }
  }

  #startReport(failure: PendingFailure, lease: number): void {
    const { project } = failure;
    const key = keyOf(failure);
    if (this.#ended.has(key) || this.#running.has(key)) return;
    const work = this.#report(failure, lease)
      .catch((error: unknown) => this.#pauseAfter(error))
      .finally(() => {
        this.#running.delete(key);
        this.#ended.add(key);
        if (!this.#running.values().some((other) => other.project === project)) this.wake();
      });
    this.#running.set(key, { project, work });
  }

  /** Tries one failure once. A shutdown meanwhile, or the end of the lease, leaves it pending. */
  async #report(failure: PendingFailure, lease: number): Promise<void> {
    const outcome = await this.#try(failure);
    if (outcome === undefined || this.#lease() !== lease) return;
    if ('settlement' in outcome) await this.#logAndSettle(failure, outcome.settlement);
    else {
      this.#nextTries.add(outcome.tries.nextAt);
      await this.#options.store.postponeFailure(failure, outcome.tries);
    }
  }

  /** Tries once to explain a failure (docs/specification.md#settling). Undefined if a shutdown interrupted the request. */
  async #try({
    project,
    promptId,
    removedAt,
    tries,
  }: PendingFailure): Promise<TryOutcome | undefined> {
    const { service, clock, emit, shutdown } = this.#options;
    if (removedAt !== undefined) return afterRemoval(tries, removedAt, clock.now());
    if (promptId === '.' || promptId === '..') return { settlement: { reason: 'invalid_id' } };
    let failed: FailedTry;
    try {
      const info = await service.getErrorInfo(project, promptId, shutdown);
      emit({ type: 'error_info.fetched', ok: info !== undefined });
      if (info !== undefined) return { settlement: info };
      failed = { useless: true, reason: 'no_error_info' };
    } catch (error) {
      if (!(error instanceof ApiError)) {
        if (shutdown.waits.aborted) return undefined;
        throw error;
      }
      emit({ type: 'error_info.fetched', ok: false });
      failed = toFailedTry(error);
    }
    return afterFailedTry(tries, failed, clock.now());
  }

  async #logAndSettle(failure: PendingFailure, settlement: Settlement): Promise<void> {
    const { project, transitionId, promptId, promptName } = failure;
    const { errorInfo, reason } = settlement;
    const settled = { ...settlement, cause: causeOf(errorInfo).id };
    this.#options.emit({
      type: 'prompt.failed',
      project,
      transitionId,
      promptId,
      promptName,
      errorInfo: errorInfo ?? null,
      errorMsgTruncated: errorInfo !== undefined && settlement.errorMsgTruncated,
      isUnusual: errorInfo && settlement.isUnusual,
      reason,
      cause: settled.cause,
    });
    await this.#settle(failure, settled);
  }

  async #settle(failure: PendingFailure, settled: Settled): Promise<void> {
    const { store, clock } = this.#options;
    const key = keyOf(failure);
    try {
      await store.settleFailure(failure, settled, clock.now());
      this.#logged.delete(key);
    } catch (error) {
      this.#logged.set(key, { failure, settled });
      throw error;
    }
  }

  /** Stores the settlements that failed, before any failure is reported: a pending one could be among them. */
  async #settleLogged(): Promise<void> {
    for (const { failure, settled } of this.#logged.values()) await this.#settle(failure, settled);
  }

  /** Pauses the reports after an error of the store, which itself emits it. @throws any other error */
  #pauseAfter(error: unknown): void {
    if (!(error instanceof StoreError)) throw error;
    this.#pausedUntil = this.#options.clock.monotonic() + STORE_PAUSE_MS;
  }

  #isPaused(): boolean {
    return this.#options.clock.monotonic() < this.#pausedUntil;
  }
}

function keyOf({ transitionId, token = '' }: FailureKey): string {
  return `${transitionId} ${token}`;
}

/** Distinguishes useless answers from failures that may pass (docs/specification.md#settling). */
function toFailedTry({ reason, details }: ApiError): FailedTry {
  switch (reason) {
    case 'not_found':
    case 'validation':
    case 'redirect':
    case 'too_large':
    case 'invalid_response':
      return { useless: true, reason };
    case 'client_error':
      if (details.statusCode !== 408) return { useless: true, reason };
      break;
    case 'auth':
    case 'rate_limited':
    case 'server_error':
    case 'timeout':
    case 'network':
    case 'tls':
      break;
  }
  return { useless: false, retryAfterMs: details.retryAfterMs };
}
