import { type HeartbeatUrl, ConfigError } from '../../config/config.ts';
import { readHeartbeatUrl } from '../../config/secrets.ts';
import type { Logger } from '../../log/logger.ts';
import { ApiError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock, Timer } from '../../monitor/ports/clock.ts';
import type { Engine } from '../engine.ts';
import { endProcess } from '../lifecycle.ts';
import type { RunWatcher } from '../scheduling.ts';
import { createMinutes, MINUTE_MS, type Gap } from './minutes.ts';
import { requestHeartbeat } from './request.ts';

/** Requests `heartbeat.url` after each minute in which every due poll was made (docs/specification.md#heartbeat). */
export interface Heartbeat extends RunWatcher {
  /** Ends the minutes. A request in flight ends with the shutdown of the engine. */
  stop(): void;
}

export function createHeartbeat(engine: Engine, logger: Logger, clock: Clock): Heartbeat {
  const { waits } = engine.shutdown;
  const minutes = createMinutes(clock, (gap) => {
    decide(gap).catch(endProcess);
  });
  let timer: Timer | undefined;
  let isRequesting = false;
  let isWithheld = false;
  /** Source of the address whose failure is logged already; a reload makes a new one. */
  let failing: HeartbeatUrl | undefined;

  async function decide(firstGap: Gap | undefined): Promise<void> {
    const { heartbeat } = engine.config();
    if (heartbeat === undefined || waits.aborted) return;
    const isConnected = engine.sharing?.worker.isConnected() ?? true;
    const gap = firstGap ?? (isConnected ? undefined : 'lease_lost');
    if (gap !== undefined && !isWithheld) {
      logger.warn(
        { event: 'heartbeat.withheld', reason: gap },
        'Not every due poll was made and stored, so the heartbeat is not requested',
      );
    }
    isWithheld = gap !== undefined;
    if (isWithheld || isRequesting) return;
    isRequesting = true;
    try {
      await request(heartbeat);
    } finally {
      isRequesting = false;
    }
  }

  async function request(source: HeartbeatUrl): Promise<void> {
    try {
      await requestHeartbeat(await readHeartbeatUrl(source), engine.config().service, waits);
      failing = undefined;
    } catch (error) {
      if (waits.aborted) return;
      if (!(error instanceof ApiError || error instanceof ConfigError)) throw error;
      if (failing === source) return;
      failing = source;
      const { reason } = error;
      const statusCode = error instanceof ApiError ? error.details.statusCode : undefined;
      logger.warn(
        { event: 'heartbeat.failed', reason, status_code: statusCode, err: error },
        'The heartbeat could not be requested',
      );
    }
  }

  const observe: Observer = ({ type }) => {
    if (type === 'scheduler.overlapped') minutes.fail('skipped');
    else if (type === 'scheduler.missed') minutes.fail('missed');
    else if (type === 'worker.lease_lost') minutes.fail('lease_lost');
    // Polls that changed nothing are stored after they have ended.
    else if (type === 'store.commit_failed') minutes.fail('store');
  };
  engine.observe(observe);

  return {
    watch: (project, run, poll) => {
      // Asked later: a reload may remove the project meanwhile.
      minutes.watch(run, poll, () => engine.projects().has(project));
    },
    start: () => {
      timer = clock.every(MINUTE_MS, () => minutes.end());
    },
    stop: () => timer?.cancel(),
  };
}
