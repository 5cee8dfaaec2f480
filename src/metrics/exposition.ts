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

/**
 * Renders families, each as one text in UTF-8: HELP, TYPE and the samples of all subjects, or nothing without samples. The
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
    if (count % SUBJECTS_PER_TURN > 0) continue;
    for (const family of rendered) family.write();
    // Between two subjects: the next one is read, by the iterator, when it is rendered.
    await setImmediate();
  }
  return rendered.map((family) => family.end());
}

class RenderedFamily<Subject extends { readonly labels: string }> {
  readonly #family: Family<Subject>;
  #pieces: Buffer[] = [];
  /** Labels of the subject that is being added. */
  #labels = '';
  /** What is not written yet. */
  #text = '';

  constructor(family: Family<Subject>) {
    this.#family = family;
  }

  add(subject: Subject): void {
    this.#labels = subject.labels;
    this.#family.samples(subject, this.#addSample);
  }

  readonly #addSample: AddSample = (value, labels = '', suffix) => {
    if (value === undefined) return;
    const comma = this.#labels === '' || labels === '' ? '' : ',';
    const all = this.#labels + comma + labels;
    this.#text += `${this.#family.name}${suffix ?? ''}${all === '' ? '' : `{${all}}`} ${value}\n`;
  };

  /** Writes the text before it is long: long texts of many parts are expensive to collect. */
  write(): void {
    if (this.#text === '') return;
    const { name, type, help } = this.#family;
    const header = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    this.#pieces.push(Buffer.from(this.#pieces.length === 0 ? header + this.#text : this.#text));
    this.#text = '';
  }

  end(): Buffer {
    this.write();
    const all = Buffer.concat(this.#pieces);
    this.#pieces = [];
    return all;
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
    bucketLabels: all.map((bound) => {
      const le = bound === Infinity ? '+Inf' : String(bound);
      return `${labels},${renderLabel('le', le)}`;
    }),
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
