import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import { type Env, readVariable } from '../config/environment.ts';
import type { Logger } from '../log/logger.ts';

const run = promisify(execFile);

/** Time limit of one `systemd-notify`, which waits until systemd has read the message. */
const NOTIFY_TIMEOUT_MS = 5000;
/** Pause before `READY=1` is repeated. Much shorter than the `TimeoutStartSec` of a unit, 90 s by default. */
const READY_AGAIN_MS = 5000;
/** Maximum time between two pings; also keeps a huge `WatchdogSec` within the range of a timer. */
const MAX_PING_INTERVAL_MS = 60_000;

/** Notifies systemd of the state of the daemon (docs/specification.md#systemd). Without systemd it does nothing. */
export interface Systemd {
  /** Reports the end of the start, again until that succeeds, and from then on pings the watchdog. */
  ready(): void;
  /** Reports the beginning of the stop, and ends the pings. */
  stopping(): void;
}

/**
 * Creates the notifier of the unit that `NOTIFY_SOCKET` names. Runs `systemd-notify`, because Node cannot send datagrams to
 * a unix socket. If it fails, one line is logged until it succeeds again.
 */
export function createSystemd(env: Env, logger: Pick<Logger, 'warn'>): Systemd {
  const socket = readVariable(env, 'NOTIFY_SOCKET');
  if (socket === undefined) return { ready: () => {}, stopping: () => {} };
  // The other variables stay here: one of them can be the API key.
  const childEnv = { NOTIFY_SOCKET: socket, PATH: readVariable(env, 'PATH') };
  const inSequence = limitConcurrency(1);
  let isFailing = false;
  let isPinging = false;
  let isStopping = false;
  let pinging: NodeJS.Timeout | undefined;
  let readyAgain: NodeJS.Timeout | undefined;

  /** Returns whether systemd was notified. */
  const notify = (state: string): Promise<boolean> =>
    inSequence(async () => {
      try {
        await run('systemd-notify', [state], {
          env: childEnv,
          timeout: NOTIFY_TIMEOUT_MS,
          killSignal: 'SIGKILL',
        });
        isFailing = false;
        return true;
      } catch (error) {
        if (!isFailing) {
          const fields = { event: 'systemd.notify_failed', err: error };
          logger.warn(fields, 'systemd-notify failed: systemd may restart the daemon');
        }
        isFailing = true;
        return false;
      }
    });

  /** Without `READY=1`, systemd would end the unit after its `TimeoutStartSec`. */
  async function notifyReady(): Promise<void> {
    if ((await notify('READY=1')) || isStopping) return;
    readyAgain = setTimeout(() => void notifyReady(), READY_AGAIN_MS);
  }

  /**
   * The ping proves that the event loop runs, and that stdout accepts lines: a write to a stdout that is full blocks the
   * event loop (log/logger.ts).
   */
  async function ping(): Promise<void> {
    if (isPinging) return;
    isPinging = true;
    await notify('WATCHDOG=1');
    isPinging = false;
  }

  return {
    ready: () => {
      void notifyReady();
      const intervalMs = pingInterval(env);
      if (intervalMs !== undefined) pinging = setInterval(() => void ping(), intervalMs);
    },
    stopping: () => {
      isStopping = true;
      clearTimeout(readyAgain);
      clearInterval(pinging);
      void notify('STOPPING=1');
    },
  };
}

/**
 * Returns a third of the watchdog's time, ms, so that one lost ping restarts nothing; undefined without a watchdog.
 * `WATCHDOG_PID` is ignored, because it names npm if npm started the daemon.
 */
function pingInterval(env: Env): number | undefined {
  const usec = Number(readVariable(env, 'WATCHDOG_USEC'));
  return usec > 0 ? Math.min(usec / 3000, MAX_PING_INTERVAL_MS) : undefined;
}
