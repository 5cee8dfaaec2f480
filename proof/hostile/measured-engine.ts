/**
 * All of a daemon but its schedule and its web interface, as a process whose costs are measured. Its arguments are the
 * sources and a configuration; it polls the projects that it is told over its channel.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { startBlockProbe } from './block-probe.ts';
import { openEngine } from './engine.ts';

/** What one poll cost. */
export interface Cost {
  /** `ok`, or why it failed. */
  readonly end: string;
  /** The longest that the event loop was held up, ms of CPU time. */
  readonly blockMs: number;
  /** The most resident memory above that before the poll, MiB. */
  readonly growthMib: number;
}

const MEBIBYTE = 1024 * 1024;
const [source = '', config = ''] = process.argv.slice(2);
const engine = await openEngine(source, config);
const probe = startBlockProbe();

process.on('message', (project: string) => void measure(project));
process.on('disconnect', () => process.exit());
process.send?.('ready');

async function measure(project: string): Promise<void> {
  globalThis.gc?.();
  // The probe has to be under way, without the collection.
  await setTimeout(20);
  const before = await memoryMib('VmRSS');
  await writeFile('/proc/self/clear_refs', '5');
  probe.reset();
  const finished = await engine.poll(project);
  await setTimeout(20);
  const cost: Cost = {
    end: finished?.failure?.reason ?? 'ok',
    blockMs: probe.longest(),
    growthMib: (await memoryMib('VmHWM')) - before,
  };
  process.send?.(cost);
}

async function memoryMib(figure: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile('/proc/self/status', 'utf8');
  const [, kilobytes] = new RegExp(`^${figure}:\\s+(\\d+) kB`, 'm').exec(status) ?? [];
  return (Number(kilobytes) * 1024) / MEBIBYTE;
}
