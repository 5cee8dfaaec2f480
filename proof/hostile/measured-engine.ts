/**
 * The daemon without its schedule and its web interface, as a process that measures its costs. Arguments: the sources and a
 * configuration. It polls the projects that it receives over its IPC channel.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { startBlockProbe } from './block-probe.ts';
import { openEngine } from './engine.ts';

/** Request for one poll. */
export interface Asked {
  readonly project: string;
  /** Whether the reply is the cost; measuring takes longer than most polls. */
  readonly isMeasured: boolean;
}

export interface Cost {
  /** `ok`, or the reason of the failure. */
  readonly end: string;
  /** Longest block of the event loop, ms of CPU time. */
  readonly blockMs: number;
  /** Maximum resident memory above that before the poll, MiB. */
  readonly growthMib: number;
}

const MEBIBYTE = 1024 * 1024;
const [source = '', config = ''] = process.argv.slice(2);
const engine = await openEngine(source, config);
const probe = startBlockProbe();

process.on('message', ({ project, isMeasured }: Asked) => void answer(project, isMeasured));
process.on('disconnect', () => process.exit());
process.send?.('ready');

async function answer(project: string, isMeasured: boolean): Promise<void> {
  if (isMeasured) {
    process.send?.(await measure(project));
  } else {
    await engine.poll(project);
    process.send?.('polled');
  }
}

async function measure(project: string): Promise<Cost> {
  globalThis.gc?.();
  // Lets the probe tick, so that it does not count the collection.
  await setTimeout(20);
  const before = await memoryMib('VmRSS');
  await writeFile('/proc/self/clear_refs', '5');
  probe.reset();
  const finished = await engine.poll(project);
  await setTimeout(20);
  return {
    end: finished?.failure?.reason ?? 'ok',
    blockMs: probe.longest(),
    growthMib: (await memoryMib('VmHWM')) - before,
  };
}

async function memoryMib(figure: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile('/proc/self/status', 'utf8');
  const [, kilobytes] = new RegExp(`^${figure}:\\s+(\\d+) kB`, 'm').exec(status) ?? [];
  return (Number(kilobytes) * 1024) / MEBIBYTE;
}
