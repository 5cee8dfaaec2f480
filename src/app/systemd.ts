import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Env, readVariable } from '../config/environment.ts';
import type { Logger } from '../log/logger.ts';
import type { Clock } from '../monitor/ports/clock.ts';

const run = promisify(execFile);

/** Time limit of one `systemd-notify`, which waits until systemd has read the message. */
const NOTIFY_TIMEOUT_MS = 5000;
/** Pause before `READY=1` is repeated. Much shorter than the `TimeoutStartSec` of a unit, 90 s by default. */
const READY_AGAIN_MS = 5000;
/** Maximum time between two pings; also keeps a huge `WatchdogSec` within the range of a timer. */
const MAX_PING_INTERVAL_MS = 60_000;

/**
 * Tells the unit that `NOTIFY_SOCKET` names that the start has ended, and from then on pings its watchdog
 * (docs/specification.md#systemd). Runs `systemd-notify`, because Node cannot send datagrams to a unix socket. If it fails, one
 * line is logged until it succeeds again. Returns the function that tells of the stop. Without a unit both do nothing.
 */
export function notifySystemd(env: Env, logger: Pick<Logger, 'warn'>, clock: Clock): () => void {
  const socket = readVariable(env, 'NOTIFY_SOCKET');
  if (socket === undefined) return () => {};
  const stopping = new AbortController();
  let isFailing = false;

  /** Returns whether systemd was notified. */
  async function notify(state: string): Promise<boolean> {
    try {
      await run('systemd-notify', [state], {
        // The other variables stay here: one of them can be the API key.
        env: { NOTIFY_SOCKET: socket, PATH: readVariable(env, 'PATH') },
        timeout: NOTIFY_TIMEOUT_MS,
        killSignal: 'SIGKILL',
      });
      isFailing = false;
    } catch (error) {
      if (!isFailing) {
        const fields = { event: 'systemd.notify_failed', err: error };
        logger.warn(fields, 'systemd-notify failed: systemd may restart the daemon');
      }
      isFailing = true;
    }
    return !isFailing;
  }

  /** Rejects when the daemon stops. */
  async function keepNotifying(): Promise<void> {
    // Without `READY=1`, systemd would end the unit after its `TimeoutStartSec`.
    while (!(await notify('READY=1'))) await clock.sleep(READY_AGAIN_MS, stopping.signal);
    const intervalMs = pingInterval(env);
    if (intervalMs === undefined) return;
    while (!stopping.signal.aborted) {
      await clock.sleep(intervalMs, stopping.signal);
      // This proves that the event loop runs, and that stdout accepts lines: a write to a stdout that is full blocks the event
      // loop (log/logger.ts).
      await notify('WATCHDOG=1');
    }
  }

  const ended = keepNotifying().catch(() => {});
  return () => {
    stopping.abort();
    // The programs run one after the other.
    void ended.then(() => notify('STOPPING=1'));
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
