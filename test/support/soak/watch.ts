import type { Run } from '../oracle/observation.ts';
import { checkGrowth } from '../oracle/totals.ts';
import { scrape, type Scrape } from '../scrape.ts';
import { type Daemon, startDaemon } from './processes.ts';

/** One daemon after the other on the same store, scraped all the time. */
export interface DaemonWatch extends AsyncDisposable {
  /** Of each one. */
  readonly runs: readonly Run[];
  /** The last one of each that was scraped at all. */
  scrapes(): readonly Scrape[];
  /** What the processes and their scrapes have done wrong. */
  readonly differences: readonly string[];
  start(): void;
  /** By SIGKILL. */
  kill(): Promise<void>;
  /** Has the one that runs load its configuration again. */
  reload(): void;
  /** Scrapes once more and stops the daemon in an orderly way. */
  end(): Promise<void>;
}

const SCRAPE_EVERY_MS = 1000;

export function watchDaemons(config: string): DaemonWatch {
  const runs: Run[] = [];
  const differences: string[] = [];
  const scrapes = new Map<Daemon, Scrape>();
  let current: Daemon | undefined;
  let scraping = Promise.resolve();
  const timer = setInterval(() => {
    scraping = scraping.then(look);
  }, SCRAPE_EVERY_MS);

  async function look(): Promise<void> {
    const daemon = current;
    const url = daemon?.url();
    if (daemon === undefined || url === undefined) return;
    try {
      const next = await scrape(url);
      if (next.status !== 200) differences.push(`/metrics answered ${next.status}`);
      const before = [...scrapes.values()].at(-1);
      if (before !== undefined) differences.push(...checkGrowth(before.samples, next.samples));
      scrapes.set(daemon, next);
    } catch (error) {
      // One that was killed meanwhile need not answer.
      if (daemon === current) differences.push(`/metrics could not be read: ${String(error)}`);
    }
  }

  async function stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const daemon = current;
    if (daemon === undefined) return;
    current = undefined;
    const code = await daemon.stop(signal);
    if (signal === 'SIGTERM' && code !== 0) differences.push(`a daemon ended with ${code}`);
    // A kill may cut its last line.
    const whole = signal === 'SIGKILL' ? daemon.garbled.slice(0, -1) : daemon.garbled;
    differences.push(...whole.map((line) => `no log line: ${line}`));
  }

  return {
    runs,
    differences,
    scrapes: () => [...scrapes.values()],
    start: () => {
      const daemon = startDaemon(config, (code) => {
        differences.push(`a daemon ended by itself with ${code}`);
        differences.push(...daemon.garbled);
      });
      current = daemon;
      runs.push(daemon.run);
    },
    kill: () => stop('SIGKILL'),
    reload: () => current?.reload(),
    end: async () => {
      await scraping;
      await look();
      await stop('SIGTERM');
    },
    [Symbol.asyncDispose]: async () => {
      clearInterval(timer);
      await stop('SIGKILL');
      await scraping;
    },
  };
}
