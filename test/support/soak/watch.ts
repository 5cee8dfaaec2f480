import type { Run } from '../oracle/observation.ts';
import { checkGrowth } from '../oracle/totals.ts';
import { scrape, type Scrape } from '../scrape.ts';
import { KEY } from './configuration.ts';
import { type Daemon, startDaemon } from './processes.ts';
import { type InnerSigns, innerSignsOf, readVitalSigns, type VitalSigns } from './vital-signs.ts';

/** Observations of one daemon from outside. */
export interface Life {
  readonly run: Run;
  /** Address of its HTTP interface, once it is logged. */
  readonly url: () => string | undefined;
  readonly pid: number;
  /** One per second. */
  readonly vital: readonly VitalSigns[];
  /** One per scrape. */
  readonly inner: readonly InnerSigns[];
  /** The samples of its last scrape, by name and labels; empty if it was never scraped. */
  readonly samples: Scrape['samples'];
}

/** Successive daemons on the same store, scraped all the time. */
export interface DaemonWatch extends AsyncDisposable {
  readonly lives: readonly Life[];
  /** Faults of the processes and their scrapes. */
  readonly differences: readonly string[];
  start(): void;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  reload(): void;
  /** Scrapes once more and stops the daemon by SIGTERM. */
  end(): Promise<void>;
}

interface CurrentLife extends Life {
  readonly daemon: Daemon;
  readonly vital: VitalSigns[];
  readonly inner: InnerSigns[];
  samples: Scrape['samples'];
}

const LOOK_EVERY_MS = 1000;

export interface WatchOptions {
  /** Source directory of the daemon. */
  readonly source?: string | undefined;
  /** Seconds between two scrapes. Default 1. */
  readonly scrapeEvery?: number;
  readonly onScrape?: (samples: Scrape['samples']) => void;
}

export function watchDaemons(
  config: string,
  { source, scrapeEvery = 1, onScrape = () => {} }: WatchOptions,
): DaemonWatch {
  const lives: CurrentLife[] = [];
  const differences: string[] = [];
  let current: CurrentLife | undefined;
  let scraped: Scrape['samples'] = new Map();
  let looking = Promise.resolve();
  let second = 0;
  const timer = setInterval(() => {
    second += 1;
    const isTurn = second % scrapeEvery === 0;
    looking = looking.then(() => look(isTurn));
  }, LOOK_EVERY_MS);

  async function look(isTurn: boolean): Promise<void> {
    const life = current;
    const url = life?.url();
    if (life === undefined || url === undefined) return;
    const age = Date.now() - life.run.startedAt;
    const vital = await readVitalSigns(life.pid, age);
    if (vital !== undefined) life.vital.push(vital);
    if (!isTurn) return;
    try {
      const next = await scrape(url);
      if (next.status !== 200) differences.push(`/metrics answered ${next.status}`);
      if (next.text.includes(KEY)) differences.push('/metrics shows the API key');
      differences.push(...checkGrowth(scraped, next.samples));
      scraped = next.samples;
      life.samples = next.samples;
      onScrape(next.samples);
      life.inner.push(innerSignsOf(next.samples, age));
    } catch (error) {
      // A daemon that was killed meanwhile need not answer.
      if (life === current) differences.push(`/metrics could not be read: ${String(error)}`);
    }
  }

  async function stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const life = current;
    if (life === undefined) return;
    current = undefined;
    const { garbled, stop: end } = life.daemon;
    const code = await end(signal);
    if (signal === 'SIGTERM' && code !== 0) differences.push(`a daemon ended with ${code}`);
    // A kill may truncate the last line.
    const whole = signal === 'SIGKILL' ? garbled.slice(0, -1) : garbled;
    differences.push(...whole.map((line) => `no log line: ${line}`));
    const leaks = life.run.lines.filter((line) => JSON.stringify(line).includes(KEY));
    differences.push(...leaks.map(({ event }) => `a line of ${event} has the API key`));
  }

  return {
    lives,
    differences,
    start: () => {
      const onEnd = (code: number | null) => {
        differences.push(`a daemon ended by itself with ${code}`, ...daemon.garbled);
      };
      const daemon = startDaemon(config, onEnd, { source });
      const { pid, run, url } = daemon;
      current = { daemon, pid, run, url, vital: [], inner: [], samples: new Map() };
      lives.push(current);
    },
    kill: () => stop('SIGKILL'),
    reload: () => current?.daemon.reload(),
    end: async () => {
      await looking;
      await look(true);
      await stop('SIGTERM');
    },
    [Symbol.asyncDispose]: async () => {
      clearInterval(timer);
      await stop('SIGKILL');
      await looking;
    },
  };
}
