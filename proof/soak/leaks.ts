import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import type { Member } from './scene.ts';

/** Makes the daemon collect its garbage on SIGUSR2 and log what is left in its main thread. */
const PROBE = `
import { writeSync } from 'node:fs';
process.on('SIGUSR2', () => {
  gc();
  const resources = Object.groupBy(process.getActiveResourcesInfo(), (type) => type);
  const line = {
    level: 'info',
    time: new Date().toISOString(),
    event: 'soak.probed',
    heap_bytes: process.memoryUsage().heapUsed,
    resources: Object.fromEntries(Object.entries(resources).map(([type, all]) => [type, all.length])),
  };
  writeSync(1, JSON.stringify(line) + '\\n');
});`;

/** Arguments of Node for a daemon that {@link measureAtRest} can ask. */
export const PROBED = [
  '--expose-gc',
  '--import',
  `data:text/javascript,${encodeURIComponent(PROBE)}`,
];

const PAGE_BYTES = 4096;
const MIB = 1024 * 1024;
/** Connections come and go at rest, too: the lowest of so many numbers counts. */
const PROBES = 8;
const PROBE_EVERY_MS = 700;

/** What a daemon holds while nothing happens but polls without changes. */
export interface AtRest {
  readonly heapMib: number;
  readonly rssMib: number;
  /** Open files and pipes. */
  readonly files: number;
  /** Connections, listeners, timers and other resources of the event loop, by type. */
  readonly resources: ReadonlyMap<string, number>;
}

/** Measures a daemon that was started with {@link PROBED}. */
export async function measureAtRest({ daemon }: Member): Promise<AtRest> {
  const pid = daemon.process.pid ?? 0;
  const heaps: number[] = [];
  const sizes: number[] = [];
  const files: number[] = [];
  const resources = new Map<string, number>();
  for (let probe = 0; probe < PROBES; probe += 1) {
    const seen = daemon.lines.length;
    process.kill(pid, 'SIGUSR2');
    const line = await daemon.line('soak.probed', {}, seen);
    heaps.push(Number(line['heap_bytes']));
    sizes.push(Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]) * PAGE_BYTES);
    files.push((await openFiles(pid)).length);
    const found = line['resources'] as Readonly<Record<string, number>>;
    // A type that is missing in one probe counts as 0.
    for (const type of new Set([...resources.keys(), ...Object.keys(found)])) {
      const lowest = probe === 0 ? Infinity : (resources.get(type) ?? 0);
      resources.set(type, Math.min(lowest, found[type] ?? 0));
    }
    await setTimeout(PROBE_EVERY_MS);
  }
  const mib = (bytes: readonly number[]) => Math.min(...bytes) / MIB;
  return { heapMib: mib(heaps), rssMib: mib(sizes), files: Math.min(...files), resources };
}

async function openFiles(pid: number): Promise<readonly string[]> {
  const descriptors = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(
    descriptors.map((one) => readlink(`/proc/${pid}/fd/${one}`).catch(() => 'socket:closed')),
  );
  return targets.filter((target) => !target.startsWith('socket:'));
}

/** Returns what a daemon holds more of than before, beyond what comes and goes. */
export function findLeaks(before: AtRest, after: AtRest, maxGrowth: AtRest): readonly string[] {
  const leaks: string[] = [];
  const compare = (what: string, from: number, to: number, max: number) => {
    if (to - from > max) leaks.push(`leak: ${what} went from ${from} to ${to} at rest`);
  };
  compare('MiB of heap', round(before.heapMib), round(after.heapMib), maxGrowth.heapMib);
  compare('MiB of memory', round(before.rssMib), round(after.rssMib), maxGrowth.rssMib);
  compare('open files', before.files, after.files, maxGrowth.files);
  for (const [type, count] of after.resources) {
    compare(type, before.resources.get(type) ?? 0, count, maxGrowth.resources.get(type) ?? 0);
  }
  return leaks;
}

export function describeRest({ heapMib, rssMib, files, resources }: AtRest): string {
  const counts = [...resources].filter(([, count]) => count > 0);
  return `heap ${round(heapMib)} MiB, memory ${round(rssMib)} MiB, ${files} files, ${counts.map(([type, count]) => `${count} ${type}`).join(', ')}`;
}

function round(mib: number): number {
  return Math.round(mib * 10) / 10;
}
