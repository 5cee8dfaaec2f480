import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Run } from '../../test/support/oracle/observation.ts';
import { type Scrape, scrape } from '../../test/support/scrape.ts';
import { KEY, type Project, writeConfiguration } from '../../test/support/soak/configuration.ts';
import { until } from '../../test/support/soak/disturbance.ts';
import { type Daemon, startDaemon } from '../../test/support/soak/processes.ts';
import { type Proxy, startProxy } from './proxy.ts';

/** Maximum wait on a busy machine, ms. */
const PATIENCE_MS = 120_000;

/** A worker: one of several daemons that share a PostgreSQL. */
export interface Member {
  readonly name: string;
  readonly daemon: Daemon;
  readonly proxy: Proxy;
  readonly run: Run;
  /** Returns the number of projects it owns, from its log. */
  owned(): number;
}

export interface Crew extends AsyncDisposable {
  /** Running workers. */
  readonly members: readonly Member[];
  /** Runs of all workers, ended ones too. */
  readonly runs: readonly Run[];
  /** Faults of the processes. */
  readonly differences: readonly string[];
  /** Returns the number of projects that all members own. */
  owned(): number;
  /** Starts one more worker, from `source` or else the crew's sources, and waits until it is up. */
  join(source?: string): Promise<Member>;
  /** Ends it by SIGKILL. */
  kill(member: Member): Promise<void>;
  /** Ends it by SIGTERM. */
  leave(member: Member): Promise<void>;
  /** Sends SIGSTOP, and SIGCONT when the returned function is called. */
  stop(member: Member): () => void;
  /** Configuration for commands, without a proxy. */
  readonly config: string;
}

export interface CrewOptions {
  readonly directory: string;
  readonly source: string | undefined;
  readonly serviceUrl: string;
  readonly projects: readonly Project[];
  readonly lease: string;
  readonly schedule: string;
  readonly maxRequestsPerSecond?: number | undefined;
  /** `url` returns a connection string with user and database. */
  readonly database: { readonly host: string; readonly port: number; url(port: number): string };
}

interface MemberRun extends Run {
  endedAt: number;
  killed: boolean;
  stopped: boolean;
}

export async function createCrew(options: CrewOptions): Promise<Crew> {
  const { directory, source, serviceUrl, projects, lease, schedule, database } = options;
  const { maxRequestsPerSecond = 0 } = options;
  const members = new Set<Member>();
  const runs: MemberRun[] = [];
  const differences: string[] = [];
  const opened = new AsyncDisposableStack();
  let names = 0;

  async function configure(name: string, port: number): Promise<string> {
    const place = join(directory, name);
    await mkdir(place);
    await writeFile(join(place, 'url'), database.url(port));
    return await writeConfiguration(place, serviceUrl, projects, {
      schedule,
      timeout: '10s',
      maxConcurrency: 64,
      service: { max_requests_per_second: maxRequestsPerSecond },
      store: { postgres_url_file: 'url', lease },
    });
  }

  async function begin(itsSource = source): Promise<Member> {
    names += 1;
    const name = `worker-${names}`;
    const proxy = opened.use(await startProxy(database.host, database.port));
    const config = await configure(name, proxy.port);
    const daemon = startDaemon(
      config,
      (code) => {
        if (isUnreached()) return;
        differences.push(`${name} ended by itself with ${code}`, ...daemon.garbled);
      },
      { source: itsSource },
    );
    // On a busy machine, the database may not accept a connection in time; an orchestrator then restarts evalwatch.
    const isUnreached = () =>
      daemon.url() === undefined &&
      daemon.garbled.some((text) => text.includes('cannot be reached'));
    const run = { ...daemon.run, endedAt: Infinity, killed: false, stopped: false };
    runs.push(run);
    const member: Member = {
      name,
      daemon,
      proxy,
      run,
      owned: () => {
        const line = daemon.run.lines.findLast(({ event }) => event?.startsWith('worker.'));
        return (line as { owned?: number } | undefined)?.owned ?? 0;
      },
    };
    members.add(member);
    await until(() => daemon.url() !== undefined || isUnreached(), PATIENCE_MS);
    if (isUnreached()) {
      members.delete(member);
      runs.splice(runs.indexOf(run), 1);
      return await begin(itsSource);
    }
    if (daemon.url() === undefined) {
      throw new Error(`${name} did not start: ${daemon.garbled.join(' ')}`);
    }
    return member;
  }

  async function end(member: Member, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { daemon, name, run } = member;
    members.delete(member);
    Object.assign(run, { killed: signal === 'SIGKILL' });
    const code = await daemon.stop(signal);
    Object.assign(run, { endedAt: Date.now() });
    if (signal === 'SIGTERM' && code !== 0) differences.push(`${name} ended with ${code}`);
    const whole = signal === 'SIGKILL' ? daemon.garbled.slice(0, -1) : daemon.garbled;
    differences.push(...whole.map((line) => `no log line: ${line}`));
    const leaks = daemon.run.lines.filter((line) => JSON.stringify(line).includes(KEY));
    differences.push(...leaks.map(({ event }) => `a line of ${event} has the API key`));
  }

  const config = await configure('commands', database.port);
  opened.defer(async () => {
    await Promise.all([...members].map((member) => end(member, 'SIGKILL')));
  });
  return {
    config,
    runs,
    differences,
    get members() {
      return [...members];
    },
    owned: () => members.values().reduce((sum, member) => sum + member.owned(), 0),
    join: begin,
    kill: (member) => end(member, 'SIGKILL'),
    leave: (member) => end(member, 'SIGTERM'),
    stop: ({ daemon, run }) => {
      process.kill(daemon.pid, 'SIGSTOP');
      Object.assign(run, { stopped: true });
      return () => process.kill(daemon.pid, 'SIGCONT');
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Returns the value of this series, or the sum of all of this name. */
export async function valueOf(member: Member, name: string): Promise<number> {
  const { samples } = await scrapeOf(member);
  return [...samples]
    .filter(([series]) => series === name || series.startsWith(`${name}{`))
    .reduce((sum, [, value]) => sum + value, 0);
}

async function scrapeOf({ daemon }: Member): Promise<Scrape> {
  return await scrape(daemon.url() ?? '');
}

/** Waits until the members own every project, and each of them a fair share or less. */
export async function settle(crew: Crew, projects: number): Promise<void> {
  const share = Math.ceil(projects / crew.members.length);
  const isFair = () =>
    crew.owned() === projects && crew.members.every((member) => member.owned() <= share);
  const isSettled = await until(isFair, PATIENCE_MS);
  if (!isSettled) {
    const owned = crew.members.map((member) => `${member.name} ${member.owned()}`);
    throw new Error(`${projects} projects, and owned are ${owned.join(', ')}`);
  }
  await setTimeout(0);
}
