/**
 * Requests paths of the daemon at an interval, each path by itself, in a separate process so that nothing else delays it.
 * Its arguments are the URL and the interval in ms; when its stdin ends it prints the {@link Answers} of each path.
 */
import { setTimeout } from 'node:timers/promises';

/** Responses of one path; times in ms. */
export interface Answers {
  readonly path: string;
  readonly count: number;
  readonly failed: number;
  readonly median: number;
  readonly p99: number;
  readonly worst: number;
}

const PATHS = ['/-/ready', '/', '/api/v1/projects', '/metrics'];

const [url = '', interval = ''] = process.argv.slice(2);
const over = new AbortController();
process.stdin.resume().on('end', () => over.abort());

async function probe(path: string): Promise<Answers> {
  const times: number[] = [];
  let failed = 0;
  while (!over.signal.aborted) {
    const started = performance.now();
    try {
      const response = await fetch(url + path);
      await response.arrayBuffer();
      if (!response.ok) failed += 1;
    } catch {
      failed += 1;
    }
    times.push(performance.now() - started);
    await setTimeout(Number(interval));
  }
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return { path, count: times.length, failed, median: at(0.5), p99: at(0.99), worst: at(1) };
}

console.log(JSON.stringify(await Promise.all(PATHS.map(probe))));
