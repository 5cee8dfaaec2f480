import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { bucketOf, dayOf, type DurationCount, learn, LEARNED_DAYS } from '../src/domain/limits.ts';
import type { UnfinishedStatus } from '../src/domain/status.ts';

const HEADER = 'project,status,ended_at,seconds';
const DAY_MS = 24 * 60 * 60 * 1000;
/** Interval between two polls. */
const INTERVAL_MS = 30_000;
/** The end of the year 9999, epoch seconds. */
const MAX_ENDED_AT = 253_402_300_800;
const NUMBER = /^\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?$/i;
/** Approximate size of a chunk of output, characters. */
const CHUNK = 64 * 1024;

/** Durations of a project's prompts in one status: whole days within the last 30, and the last day. */
interface Series {
  readonly project: string;
  readonly status: UnfinishedStatus;
  day: number;
  known: DurationCount[];
  today: Map<number, number>;
  endedAt: number;
}

/**
 * Yields the limits that evalwatch learns from the durations in a CSV file, as CSV in chunks of lines: for each project and
 * status, one line a day, from the day of its first duration to the day after its last one.
 * @throws {Error} if a line is no duration, with its number; the error of the file system if the file cannot be read
 */
export async function* limitsOfFile(path: string): AsyncGenerator<string> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  let chunk = '';
  for await (const line of limitsOf(lines)) {
    chunk += `${line}\n`;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
}

/** Yields the lines of {@link limitsOfFile}. Memory depends on the number of projects only. */
export async function* limitsOf(lines: AsyncIterable<string>): AsyncGenerator<string> {
  const allSeries = new Map<string, Series>();
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (number === 1) {
      if (line.replace(/^\uFEFF/, '').trim() !== HEADER) throw invalid(1, `is not ${HEADER}`);
      yield 'project,status,day,limit_seconds';
    } else if (line !== '') {
      const { project, status, endedAt, seconds } = parseLine(line, number);
      const key = `${status} ${project}`;
      const day = dayOf(endedAt * 1000);
      let series = allSeries.get(key);
      if (series === undefined) {
        series = { project, status, day, known: [], today: new Map(), endedAt };
        allSeries.set(key, series);
        yield toLine(series);
      }
      if (endedAt < series.endedAt) {
        throw invalid(number, 'ended_at is before that of an earlier line; sort the file by it');
      }
      series.endedAt = endedAt;
      yield* advance(series, day);
      const bucket = bucketOf(seconds * 1000);
      series.today.set(bucket, (series.today.get(bucket) ?? 0) + 1);
    }
  }
  if (number === 0) throw invalid(1, `is not ${HEADER}`);
  for (const series of allSeries.values()) yield* advance(series, series.day + 1);
}

/** Yields a line for each day up to this one. */
function* advance(series: Series, day: number): Generator<string> {
  while (series.day < day) {
    for (const [bucket, count] of series.today) {
      series.known.push({ day: series.day, bucket, count });
    }
    series.today = new Map();
    series.day += 1;
    const firstDay = series.day - LEARNED_DAYS;
    series.known = series.known.filter((count) => count.day >= firstDay);
    yield toLine(series);
  }
}

function toLine({ project, status, day, known }: Series): string {
  const now = day * DAY_MS;
  const { limitMs } = learn(known, { status, now, maxIntervalMs: INTERVAL_MS });
  const name = /[",\r\n]/.test(project) ? `"${project.replaceAll('"', '""')}"` : project;
  return `${name},${status},${new Date(now).toISOString().slice(0, 10)},${limitMs / 1000}`;
}

interface Duration {
  readonly project: string;
  readonly status: UnfinishedStatus;
  /** Epoch seconds. */
  readonly endedAt: number;
  readonly seconds: number;
}

function parseLine(line: string, number: number): Duration {
  const fields = line.includes('"') ? unquote(line, number) : line.split(',');
  const [project = '', status = '', endedAt = '', seconds = ''] = fields;
  if (fields.length !== 4) throw invalid(number, `has ${fields.length} fields instead of 4`);
  if (project === '') throw invalid(number, 'has no project');
  if (status !== 'PENDING' && status !== 'RUNNING') {
    throw invalid(number, `status ${JSON.stringify(status)} is neither PENDING nor RUNNING`);
  }
  if (!NUMBER.test(endedAt) || Number(endedAt) >= MAX_ENDED_AT) {
    throw invalid(number, `ended_at ${JSON.stringify(endedAt)} is not a time in epoch seconds`);
  }
  if (!NUMBER.test(seconds) || !Number.isFinite(Number(seconds))) {
    throw invalid(number, `seconds ${JSON.stringify(seconds)} is not a duration in seconds`);
  }
  return { project, status, endedAt: Number(endedAt), seconds: Number(seconds) };
}

/** Splits a line with quoted fields, in which a quote is written twice. */
function unquote(line: string, number: number): readonly string[] {
  const fields: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (;;) {
    const match = field.exec(line);
    if (match === null) throw invalid(number, 'has a quote that does not end its field');
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    if (match[3] === '') return fields;
  }
}

function invalid(line: number, what: string): Error {
  return new Error(`line ${line}: ${what}`);
}
