import { requestOnce } from '../client/request-once.ts';
import { withRetries } from '../client/retry.ts';
import { type HeartbeatUrl, ConfigError } from '../config/config.ts';
import { readHeartbeatUrl } from '../config/secrets.ts';
import type { Logger } from '../log/logger.ts';
import { ApiError, type ApiFailureReason } from '../monitor/errors.ts';
import type { FinishedPoll, MonitorEvent } from '../monitor/events.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { ServiceSettings } from '../monitor/ports/service.ts';
import type { PollRun } from '../monitor/ports/watched-project.ts';
import { systemClock } from './clock.ts';
import type { Engine } from './engine.ts';
import { endProcess, version } from './process.ts';

const MINUTE_MS = 60_000;
/** All attempts together take less than a minute. */
const RETRIES = 2;

/** Why a minute has no heartbeat (docs/specification.md#heartbeat). */
type Gap = 'skipped' | 'missed' | 'late' | 'stuck' | 'unfinished' | 'store' | 'lease_lost';

const GAP_OF_EVENT: Partial<Record<MonitorEvent['type'], Gap>> = {
  'scheduler.overlapped': 'skipped',
  'scheduler.missed': 'missed',
  'worker.lease_lost': 'lease_lost',
  // Polls that changed nothing are stored after they have ended.
  'store.commit_failed': 'store',
};

/** Requests `heartbeat.url` after each minute in which every due poll was made and stored (docs/specification.md#heartbeat). */
export class Heartbeat {
  readonly #engine: Engine;
  readonly #logger: Logger;
  readonly #clock: Clock;
  #timer: Timer | undefined;
  /** The first gap of this minute that no reload can undo. */
  #gap: Gap | undefined;
  /** Polls that ended in this minute and were not made. */
  #failed: { readonly project: string; readonly gap: Gap }[] = [];
  /** Polls that run. A long one already ran at the end of the last minute. */
  readonly #running = new Set<{ readonly project: string; isLong: boolean }>();
  #isWithheld = false;
  /** Source of the address whose failure is logged already; a reload makes a new one. */
  #failing: HeartbeatUrl | undefined;

  constructor(engine: Engine, logger: Logger, clock: Clock) {
    this.#engine = engine;
    this.#logger = logger;
    this.#clock = clock;
    engine.observe(({ type }) => {
      this.#gap ??= GAP_OF_EVENT[type];
    });
  }

  /** Begins the first minute. */
  start(): void {
    this.#timer = this.#clock.every(MINUTE_MS, () => {
      this.#endMinute().catch(endProcess);
    });
  }

  /** Ends the minutes. A request in flight ends with the shutdown of the engine. */
  stop(): void {
    this.#timer?.cancel();
  }

  /** Watches a scheduled run of a project, with its poll. Never rejects. */
  async watch(
    project: string,
    { dueAt }: PollRun,
    poll: Promise<Pick<FinishedPoll, 'isStored'> | undefined>,
  ): Promise<void> {
    if (this.#clock.now() - dueAt >= MINUTE_MS) this.#gap ??= 'late';
    const running = { project, isLong: false };
    this.#running.add(running);
    // An error is a bug, which the scheduler reports.
    const finished = await poll.catch(() => undefined);
    this.#running.delete(running);
    // A poll that the service failed was made. One that could not be stored saw nothing.
    if (finished?.isStored) return;
    this.#failed.push({ project, gap: finished === undefined ? 'unfinished' : 'store' });
  }

  async #endMinute(): Promise<void> {
    const gap = this.#findGap();
    this.#gap = undefined;
    this.#failed = [];
    for (const each of this.#running) each.isLong = true;
    const { heartbeat } = this.#engine.config;
    if (heartbeat === undefined || this.#engine.shutdown.waits.aborted) return;
    if (gap !== undefined && !this.#isWithheld) {
      this.#logger.warn(
        { event: 'heartbeat.withheld', reason: gap },
        'Not every due poll was made and stored, so the heartbeat is not requested',
      );
    }
    this.#isWithheld = gap !== undefined;
    if (gap === undefined) await this.#request(heartbeat);
  }

  #findGap(): Gap | undefined {
    // Asked only now: a reload may have removed the project after its poll.
    const isConfigured = ({ project }: { readonly project: string }) =>
      this.#engine.projects.has(project);
    const gap = this.#gap ?? this.#failed.find(isConfigured)?.gap;
    if (gap !== undefined) return gap;
    if (this.#running.values().some((each) => each.isLong && isConfigured(each))) return 'stuck';
    return this.#engine.worker?.isConnected() === false ? 'lease_lost' : undefined;
  }

  async #request(source: HeartbeatUrl): Promise<void> {
    const { waits } = this.#engine.shutdown;
    try {
      await requestHeartbeat(await readHeartbeatUrl(source), this.#engine.config.service, waits);
      this.#failing = undefined;
    } catch (error) {
      if (waits.aborted) return;
      if (!(error instanceof ApiError || error instanceof ConfigError)) throw error;
      if (this.#failing === source) return;
      this.#failing = source;
      const { reason } = error;
      const statusCode = error instanceof ApiError ? error.details.statusCode : undefined;
      this.#logger.warn(
        { event: 'heartbeat.failed', reason, status_code: statusCode, err: error },
        'The heartbeat could not be requested',
      );
    }
  }
}

/**
 * Requests the address of a heartbeat. Rejects with the signal's reason when it aborts.
 * @throws {ApiError} if no attempt was answered with 2xx; its message has no part of the address, nor of what it resolves to
 */
export async function requestHeartbeat(
  url: string,
  network: Pick<ServiceSettings, 'authorities' | 'proxyUrl'>,
  signal: AbortSignal,
): Promise<void> {
  async function attempt(): Promise<void> {
    const { statusCode } = await requestOnce(url, {
      headers: { 'user-agent': `evalwatch/${version}` },
      network,
      clock: systemClock,
      signal,
    });
    if (statusCode >= 200 && statusCode < 300) return;
    throw new ApiError(reasonOf(statusCode), `the answer is ${statusCode}`, { statusCode });
  }
  await withRetries(attempt, {
    retries: RETRIES,
    signal: { waits: signal },
    clock: systemClock,
    random: Math.random,
    onWait: () => {},
  });
}

function reasonOf(statusCode: number): ApiFailureReason {
  if (statusCode >= 500) return 'server_error';
  if (statusCode === 429) return 'rate_limited';
  return statusCode >= 400 ? 'client_error' : 'redirect';
}
