/** The text exposition format 0.0.4, for metrics that exist once per project. prom-client takes five times as long. */
import { setImmediate } from 'node:timers/promises';

/** Adds a sample; without a value there is none. The labels are as `renderLabels` writes them. */
export type AddSample = (
  value: number | undefined,
  labels?: string,
  suffix?: '_bucket' | '_sum' | '_count',
) => void;

/** A metric of subjects, such as projects. */
export interface Family<Subject> {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** One line that names the unit. */
  readonly help: string;
  /** Adds the samples of a subject. */
  readonly samples: (subject: Subject, add: AddSample) => void;
}

/** Number of subjects that are read and rendered in one turn of the event loop, in a few milliseconds. */
const SUBJECTS_PER_TURN = 25;
/** Length of the pieces of a long family. */
const PIECE_BYTES = 64 * 1024;
/** UTF-8 needs at most this many bytes for a UTF-16 unit. */
const BYTES_PER_UNIT = 3;

/**
 * Renders families in pieces of UTF-8: each has HELP, TYPE and the samples of all subjects, or nothing without samples. The
 * samples of a subject are read at one moment; other work runs in between. `labels` are those that all its samples have.
 */
export async function renderFamilies<Subject extends { readonly labels: string }>(
  families: readonly Family<Subject>[],
  subjects: Iterable<Subject>,
): Promise<readonly Buffer[]> {
  const rendered = families.map((family) => new RenderedFamily(family));
  let count = 0;
  for (const subject of subjects) {
    for (const family of rendered) family.add(subject);
    count += 1;
    // Between two subjects: the next one is read, by the iterator, when it is rendered.
    if (count % SUBJECTS_PER_TURN === 0) await setImmediate();
  }
  return rendered.flatMap((family) => family.end());
}

class RenderedFamily<Subject extends { readonly labels: string }> {
  readonly #family: Family<Subject>;
  readonly #pieces: Buffer[] = [];
  #piece = Buffer.alloc(0);
  #length = 0;
  /** Starts of the samples of the subject that is being added, with labels besides its own and without; and their text. */
  #start = '';
  #alone = '';
  #text = '';

  constructor(family: Family<Subject>) {
    this.#family = family;
  }

  add(subject: Subject): void {
    const { name, type, help, samples } = this.#family;
    this.#text = '';
    const { labels } = subject;
    this.#start = `${name}{${labels === '' ? '' : `${labels},`}`;
    this.#alone = labels === '' ? name : `${name}{${labels}}`;
    samples(subject, this.#addSample);
    if (this.#text === '') return;
    const isFirst = this.#pieces.length === 0 && this.#length === 0;
    const header = isFirst ? `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n` : '';
    this.#write(header + this.#text);
  }

  /** Adds to the text in few steps: a text of many parts is expensive to write. */
  readonly #addSample: AddSample = (value, labels, suffix) => {
    if (value === undefined) return;
    const { name } = this.#family;
    const start = suffix ? name + suffix + this.#start.slice(name.length) : this.#start;
    const series = labels === undefined ? this.#alone : `${start}${labels}}`;
    this.#text += `${series} ${formatNumber(value)}\n`;
  };

  /** Writes at once, because texts that live for long are expensive to collect. */
  #write(text: string): void {
    const maxBytes = text.length * BYTES_PER_UNIT;
    if (this.#length + maxBytes > this.#piece.length) {
      this.#endPiece();
      this.#piece = Buffer.allocUnsafe(Math.max(PIECE_BYTES, maxBytes));
      this.#length = 0;
    }
    this.#length += this.#piece.write(text, this.#length);
  }

  #endPiece(): void {
    if (this.#length > 0) this.#pieces.push(this.#piece.subarray(0, this.#length));
  }

  end(): readonly Buffer[] {
    this.#endPiece();
    return this.#pieces;
  }
}

/** Upper bounds of a histogram in ms, +Inf included, and the labels of its samples, rendered once. */
interface Buckets {
  readonly boundsMs: readonly number[];
  readonly bucketLabels: readonly string[];
  readonly labels: string;
}

/** Takes upper bounds in seconds, ascending, without +Inf. */
export function bucketsOf(bounds: readonly number[], labels: string): Buckets {
  const all = [...bounds, Infinity];
  return {
    boundsMs: all.map((bound) => bound * 1000),
    bucketLabels: all.map((bound) => `${labels},le="${formatNumber(bound)}"`),
    labels,
  };
}

/** Counts durations in buckets. */
export class DurationHistogram {
  readonly #buckets: Buckets;
  readonly #counts: number[];
  #sumMs = 0;

  constructor(buckets: Buckets) {
    this.#buckets = buckets;
    this.#counts = buckets.boundsMs.map(() => 0);
  }

  observe(ms: number): void {
    const bucket = this.#buckets.boundsMs.findIndex((bound) => ms <= bound);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sumMs += ms;
  }

  /** Adds the cumulative buckets, then sum (in seconds) and count. */
  samples(add: AddSample): void {
    const { bucketLabels, labels } = this.#buckets;
    let total = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      total += count;
      add(total, bucketLabels[bucket], '_bucket');
    }
    add(this.#sumMs / 1000, labels, '_sum');
    add(total, labels, '_count');
  }
}

/** Returns a label as `a="1"`, its value escaped. */
export function renderLabel(name: string, value: string): string {
  const escaped = value.replaceAll(/["\\\n]/g, (each) => (each === '\n' ? '\\n' : `\\${each}`));
  return `${name}="${escaped}"`;
}

/** Returns values with their labels, rendered once for all scrapes. */
export function labelled<Value extends string>(
  name: string,
  values: readonly Value[],
): readonly (readonly [value: Value, label: string])[] {
  return values.map((value) => [value, renderLabel(name, value)]);
}

/** Converts epoch ms to Unix time in seconds. */
export function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function formatNumber(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}
