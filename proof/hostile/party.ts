import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type * as Cli from '../../src/cli/cli.ts';
import { COMPILE_CACHE } from '../../test/support/compile-cache.ts';
import { NODE_FLAGS } from '../../test/support/node-flags.ts';
import type { LogLine } from '../../test/support/oracle/observation.ts';
import { KEY } from '../../test/support/soak/configuration.ts';
import type { Mood } from './cast.ts';
import type { Form } from './form.ts';
import type { Address, Report } from './service.ts';

const BLOCK_PROBE = fileURLToPath(new URL('block-probe.ts', import.meta.url));
const SERVICE = fileURLToPath(new URL('service.ts', import.meta.url));
const PATIENCE_MS = 120_000;
const RSS_EVERY_MS = 50;
const MEBIBYTE = 1024 * 1024;
/** Characters that some readers treat as the end of a line. */
const LINE_ENDS = /[\n\r\v\f\u0085\u2028\u2029]/;

export async function startHostileService(form: Form) {
  const child = fork(SERVICE, [KEY, form], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [address] = (await once(child, 'message')) as [Address];
  return {
    ...address,
    be: (mood: Mood) => void child.send(mood),
    report: async () => {
      child.send('report');
      const [report] = (await once(child, 'message')) as [Report];
      return report;
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

/** Starts a daemon from `source` and reads its output. Its lines go to a file: with a pipe, it would wait for the reader. */
export async function startWatchedDaemon(source: string, config: string) {
  const output = `${config}.log`;
  const blockFile = `${config}.block`;
  await using stdout = await open(output, 'w');
  const child = spawn(
    process.execPath,
    [...NODE_FLAGS, '--import', BLOCK_PROBE, join(source, 'main.js'), 'run', '--config', config],
    {
      env: { PATH: process.env['PATH'], ...COMPILE_CACHE, BLOCK_FILE: blockFile },
      stdio: ['ignore', stdout.fd, 'pipe'],
    },
  );
  const ended = (async () => {
    const [stderr, [code]] = await Promise.all([
      text(child.stderr as Readable),
      once(child, 'close') as Promise<[number | null]>,
    ]);
    return { stderr, code };
  })();
  const lines: LogLine[] = [];
  const garbled: string[] = [];
  let readBytes = 0;
  /** Continues where it stopped, up to the last complete line. */
  const read = async () => {
    const bytes = (await readFile(output)).subarray(readBytes);
    const end = bytes.lastIndexOf('\n') + 1;
    readBytes += end;
    for (const line of bytes.toString('utf8', 0, end).split(LINE_ENDS)) {
      if (line === '') continue;
      try {
        lines.push(JSON.parse(line) as LogLine);
      } catch {
        garbled.push(line);
      }
    }
  };
  let mostRss = 0;
  const sample = async () => {
    mostRss = Math.max(mostRss, await rssOf(child.pid));
  };
  const sampling = setInterval(() => void sample(), RSS_EVERY_MS);
  const started = async () => {
    await read();
    return lines.find(({ event }) => event === 'daemon.started') as { url?: string } | undefined;
  };
  await until('a start', async () => (await started()) !== undefined);
  const { url = '' } = (await started()) ?? {};
  return {
    url,
    lines,
    garbled,
    read,
    stdout: () => readFile(output, 'utf8'),
    rss: () => rssOf(child.pid),
    /** Maximum until now, MiB. */
    mostRss: () => mostRss,
    resetBlock: () => void child.kill('SIGUSR2'),
    /** Returns the longest block of the event loop since the last reset, ms of CPU time. */
    blockMs: async () => Number(await readFile(blockFile, 'utf8').catch(() => '0')),
    stop: async () => {
      child.kill('SIGTERM');
      const end = await ended;
      await read();
      return end;
    },
    [Symbol.asyncDispose]: async () => {
      clearInterval(sampling);
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export type WatchedDaemon = Awaited<ReturnType<typeof startWatchedDaemon>>;

/** Returns what a reading command prints with `--json`. */
export async function ask(source: string, command: string, config: string): Promise<string> {
  const { main } = (await import(join(source, 'cli/cli.ts'))) as typeof Cli;
  const stdout = new PassThrough();
  const printed = text(stdout);
  const args = [command, '--json', '--config', config];
  await main(args, { stdout, stderr: process.stderr }, { onSignal: undefined });
  stdout.end();
  return await printed;
}

/** Waits until `isSo` returns true. @throws after {@link PATIENCE_MS} */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await setTimeout(50);
  }
}

/** Resident memory, MiB. */
async function rssOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return (Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024) / MEBIBYTE;
}
