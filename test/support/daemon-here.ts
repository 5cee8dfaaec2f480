import { systemClock } from '../../src/app/clock.ts';
import { startDaemon } from '../../src/app/daemon.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { Clock } from '../../src/monitor/ports/clock.ts';
import type { ReloadResult } from '../../src/web/content.ts';
import { commandLine } from './command-line.ts';
import { type Finished, keepLines, type Lines, type Workspace } from './evalwatch.ts';

// A daemon takes 0.7 s of CPU time as a process, and 0.1 s in the process of the test, where its clock can be fast. Tests that
// need a process (signals, stdout, permissions, kills) start one with evalwatch.ts.

/** A daemon in the process of the test; `await using` stops it. */
export interface DaemonHere extends Lines, AsyncDisposable {
  /** Same as SIGHUP. */
  reload(): Promise<ReloadResult>;
  /** Same as SIGTERM. */
  stop(): Promise<void>;
}

export interface HereOptions {
  /** Time that its clock is ahead. */
  readonly aheadMs?: number;
  /** Speed of its clock relative to real time. Default 10. */
  readonly speed?: number;
  /** Whether it reloads the configuration when the file changes. */
  readonly watchConfig?: boolean;
  /** Whether a stop ends requests in flight at once, instead of after 8 s. */
  readonly withoutGrace?: boolean;
}

/** Time to which the last daemon of a configuration has come. The next one starts there, as if time had not gone back. */
const reached = new Map<string, number>();

/** Starts the daemon of a workspace in this process. */
export async function startHere(
  { config: file }: Pick<Workspace, 'config'>,
  { aheadMs = 0, speed = 10, watchConfig = false, withoutGrace = false }: HereOptions = {},
): Promise<DaemonHere> {
  const { add, kept } = keepLines(() => 'in this process');
  let isStopping = false;
  let isHurried = withoutGrace;
  const startedAt = Date.now();
  const origin = Math.max(startedAt, reached.get(file) ?? 0);
  const passed = () => origin + speed * (Date.now() - startedAt);
  const clock: Clock = {
    now: () => Math.floor(passed() + aheadMs),
    monotonic: () => speed * performance.now(),
    timeout: (ms, run) => systemClock.timeout(isStopping && isHurried ? 0 : ms / speed, run),
    every: (ms, run) => systemClock.every(ms / speed, run),
    sleep: (ms, signal) => systemClock.sleep(ms / speed, signal),
  };
  const load = () => loadConfig({ file, env: {}, requireSecrets: true });
  const config = await load();
  const logger = createLogger({
    level: config.log.level,
    destination: { write: (line) => add(line.trimEnd()) },
    onFatalError: (error) => {
      throw error;
    },
  });
  const daemon = await startDaemon({
    config,
    loadConfig: load,
    watchConfig,
    logger,
    clock,
    revision: 'unknown',
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    isStopping = true;
    stopped ??= daemon.stop().finally(() => reached.set(file, passed()));
    return stopped;
  };
  return {
    ...kept,
    reload: () => daemon.reload(),
    stop,
    [Symbol.asyncDispose]: async () => {
      isHurried = true;
      await stop();
    },
  };
}

/** Runs a command that reads the store of a workspace, in this process. */
export async function readHere(
  { config }: Pick<Workspace, 'config'>,
  args: readonly string[],
): Promise<Pick<Finished, 'code' | 'stdout' | 'stderr' | 'json'>> {
  const finished = await commandLine([...args, '--config', config]);
  const json = () => JSON.parse(finished.stdout) as readonly Record<string, unknown>[];
  return { ...finished, json };
}
