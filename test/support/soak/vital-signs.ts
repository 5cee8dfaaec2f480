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
