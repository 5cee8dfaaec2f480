/** The text exposition format 0.0.4, for metrics that exist once per project. prom-client takes five times as long. */
import { setImmediate } from 'node:timers/promises';

/** Adds a sample; without a value there is none. The labels are as `renderLabels` writes them. */
export type AddSample = (
  value: number | undefined,
  labels?: string,
  suffix?: '' | '_bucket' | '_sum' | '_count',
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
const SUBJECTS_PER_TURN = 50;
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
    if (count % SUBJECTS_PER_TURN === 0) await setImmediate();
  }
  return rendered.flatMap((family) => family.end());
}

class RenderedFamily<Subject extends { readonly labels: string }> {
  readonly #family: Family<Subject>;
  readonly #pieces: Buffer[] = [];
  #piece = Buffer.alloc(0);
  #length = 0;

  constructor(family: Family<Subject>) {
    this.#family = family;
  }

  add(subject: Subject): void {
    const { name, type, help, samples } = this.#family;
    let text = '';
    samples(subject, (value, labels = '', suffix = '') => {
      if (value === undefined) return;
      const comma = subject.labels === '' || labels === '' ? '' : ',';
      const all = `${subject.labels}${comma}${labels}`;
      text += `${name}${suffix}${all === '' ? '' : `{${all}}`} ${formatNumber(value)}\n`;
    });
    if (text === '') return;
    const isFirst = this.#pieces.length === 0 && this.#length === 0;
    this.#write(isFirst ? `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${text}` : text);
  }

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

/** Counts durations in buckets. */
export class DurationHistogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sumMs = 0;

  /** Takes upper bounds in seconds, ascending, without +Inf. */
  constructor(bounds: readonly number[]) {
    this.#bounds = [...bounds, Infinity];
    this.#counts = this.#bounds.map(() => 0);
  }

  observe(ms: number): void {
    const bucket = this.#bounds.findIndex((bound) => ms <= bound * 1000);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sumMs += ms;
  }

  /** Adds the cumulative buckets, then sum (in seconds) and count. */
  samples(add: AddSample, labels: string): void {
    let total = 0;
    for (const [bucket, bound] of this.#bounds.entries()) {
      total += this.#counts[bucket] ?? 0;
      add(total, `${labels},le="${formatNumber(bound)}"`, '_bucket');
    }
    add(this.#sumMs / 1000, labels, '_sum');
    add(total, labels, '_count');
  }
}

/** Returns labels as `a="1",b="2"`, values escaped. */
export function renderLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabelValue(value)}"`)
    .join(',');
}

/** Converts epoch ms to Unix time in seconds. */
export function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function escapeLabelValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

function formatNumber(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}
