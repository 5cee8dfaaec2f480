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
    const own = subject.labels === '' ? '' : flat(subject.labels, ',');
    const alone = subject.labels === '' ? '' : flat('{', subject.labels, '}');
    for (const family of rendered) family.add(subject, own, alone);
    count += 1;
    if (count % SUBJECTS_PER_TURN > 0) continue;
    for (const family of rendered) family.write();
    // Between two subjects: the next one is read, by the iterator, when it is rendered.
    await setImmediate();
  }
  return rendered.flatMap((family) => family.end());
}

class RenderedFamily<Subject> {
  readonly #family: Family<Subject>;
  readonly #start: string;
  readonly #pieces: Buffer[] = [];
  #piece = Buffer.alloc(0);
  #length = 0;
  /** Labels of the subject that is being added: before further ones, and alone. */
  #own = '';
  #alone = '';
  /** What is not written yet. */
  #text = '';

  constructor(family: Family<Subject>) {
    this.#family = family;
    this.#start = flat(family.name, '{');
  }

  add(subject: Subject, own: string, alone: string): void {
    this.#own = own;
    this.#alone = alone;
    this.#family.samples(subject, this.#addSample);
  }

  readonly #addSample: AddSample = (value, labels, suffix) => {
    if (value === undefined) return;
    const number = formatNumber(value);
    if (labels === undefined) {
      this.#text += `${this.#family.name}${this.#alone} ${number}\n`;
    } else {
      const start = suffix === undefined ? this.#start : `${this.#family.name}${suffix}{`;
      this.#text += `${start}${this.#own}${labels}} ${number}\n`;
    }
  };

  /** Writes the text before it is long: long texts of many parts are expensive to collect. */
  write(): void {
    if (this.#text === '') return;
    const { name, type, help } = this.#family;
    const isFirst = this.#pieces.length === 0 && this.#length === 0;
    const text = isFirst
      ? `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${this.#text}`
      : this.#text;
    this.#text = '';
    const bytes = Buffer.byteLength(text);
    if (this.#length + bytes > this.#piece.length) {
      this.#endPiece();
      this.#piece = Buffer.allocUnsafe(Math.max(PIECE_BYTES, bytes));
      this.#length = 0;
    }
    this.#length += this.#piece.write(text, this.#length);
  }

  #endPiece(): void {
    if (this.#length > 0) this.#pieces.push(this.#piece.subarray(0, this.#length));
  }

  end(): readonly Buffer[] {
    this.write();
    this.#endPiece();
    return this.#pieces;
  }
}

/** Joins parts of a text that is used many times: a text made by `+` or a template is put together again at each use. */
function flat(...parts: readonly string[]): string {
  return parts.join('');
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
    bucketLabels: all.map((bound) => flat(labels, ',', renderLabel('le', formatNumber(bound)))),
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

const SPECIAL = /["\\\n]/;

/** Returns a label as `a="1"`, its value escaped. */
export function renderLabel(name: string, value: string): string {
  const escaped = SPECIAL.test(value)
    ? value.replaceAll(/["\\\n]/g, (each) => (each === '\n' ? '\\n' : `\\${each}`))
    : value;
  return flat(name, '="', escaped, '"');
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
