import { readdir, readFile } from 'node:fs/promises';
import type { Scrape } from '../scrape.ts';

/** Resource usage of a daemon at one moment. */
export interface VitalSigns {
  /** Time since its start, ms. */
  readonly age: number;
  readonly rssBytes: number;
  readonly descriptors: number;
}

/** Event loop lag and heap of a daemon in one scrape. */
export interface InnerSigns {
  readonly age: number;
  readonly heapBytes: number;
  /** Lag of the event loop since the previous scrape, seconds. */
  readonly lag: { readonly p50: number; readonly p99: number; readonly max: number };
}

const PAGE_BYTES = 4096;
const HOUR_MS = 60 * 60 * 1000;

/** Returns undefined if the process has ended. */
export async function readVitalSigns(pid: number, age: number): Promise<VitalSigns | undefined> {
  try {
    const [statm, descriptors] = await Promise.all([
      readFile(`/proc/${pid}/statm`, 'utf8'),
      readdir(`/proc/${pid}/fd`),
    ]);
    const pages = Number(statm.split(' ')[1]);
    return { age, rssBytes: pages * PAGE_BYTES, descriptors: descriptors.length };
  } catch {
    return undefined;
  }
}

export function innerSignsOf(samples: Scrape['samples'], age: number): InnerSigns {
  const lag = (which: string) => samples.get(`nodejs_eventloop_lag_${which}_seconds`) ?? NaN;
  return {
    age,
    heapBytes: samples.get('nodejs_heap_size_used_bytes') ?? NaN,
    lag: { p50: lag('p50'), p99: lag('p99'), max: lag('max') },
  };
}

/** Returns the growth per hour, by linear regression over the ages of its samples. */
export function slopePerHour<Sample extends { readonly age: number }>(
  samples: readonly Sample[],
  of: (sample: Sample) => number,
): number {
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const middleAge = mean(samples.map(({ age }) => age));
  const middle = mean(samples.map(of));
  let together = 0;
  let alone = 0;
  for (const sample of samples) {
    together += (sample.age - middleAge) * (of(sample) - middle);
    alone += (sample.age - middleAge) ** 2;
  }
  return (together / alone) * HOUR_MS;
}
