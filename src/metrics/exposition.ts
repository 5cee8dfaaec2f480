import { setImmediate } from 'node:timers/promises';

/**
 * The text exposition format 0.0.4, for metrics that exist once per project. Joining strings takes a tenth of the time of
 * prom-client. With 1,000 projects there are tens of thousands of series, and few of them change between two scrapes.
 */

/** One sample of a metric, distinguished by its suffix and labels. */
export interface Sample {
  readonly suffix?: '_bucket' | '_sum' | '_count';
  readonly labels?: Readonly<Record<string, string>>;
}

/** A metric of many subjects, each with the same samples. */
export interface Family<Subject> {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** One line that names the unit. */
  readonly help: string;
  readonly samples: readonly Sample[];
  /**
   * Returns one value for each of `samples`; undefined omits the sample. Returning the same array again means that no value
   * has changed.
   */
  values(subject: Subject): readonly (number | undefined)[];
}

/** The sample list of a metric with a single value per subject. */
export const SINGLE: readonly Sample[] = [{}];

/** Returns labels as `a="1",b="2"`, values escaped. */
export function renderLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabelValue(value)}"`)
    .join(',');
}

/**
 * Renders families for the same subjects at each scrape: `add` each subject, then `finish`. Only changed samples are
 * rendered, and only families with changes are joined.
 */
export class FamilyRenderer<Subject> {
  readonly #families: readonly RenderedFamily<Subject>[];
  readonly #areImmutable: boolean;
  readonly #added: { labels: string; subject: Subject }[] = [];
  #count = 0;

  /** With `areImmutable`, the same subject object always has the same values, so its values are not read again. */
  constructor(
    families: readonly Family<Subject>[],
    { areImmutable = false }: { readonly areImmutable?: boolean } = {},
  ) {
    this.#families = families.map((family) => new RenderedFamily(family));
    this.#areImmutable = areImmutable;
  }

  /** Adds the next subject with its current values. `labels` is the rendered text of at least one label. */
  add(labels: string, subject: Subject): void {
    const position = this.#count;
    this.#count += 1;
    const last = this.#added[position];
    if (this.#areImmutable && last?.subject === subject && last.labels === labels) return;
    this.#added[position] = { labels, subject };
    for (const family of this.#families) family.set(position, labels, subject);
  }

  /**
   * Returns each family with HELP, TYPE and the samples of every added subject. Lets other work run between families.
   */
  async finish(): Promise<string> {
    const count = this.#count;
    this.#count = 0;
    this.#added.length = count;
    let text = '';
    for (const family of this.#families) {
      text += family.text(count);
      await setImmediate();
    }
    return text;
  }
}

type Values = readonly (number | undefined)[];

class RenderedFamily<Subject> {
  readonly #family: Family<Subject>;
  readonly #starts: readonly string[];
  readonly #ends: readonly string[];
  /** By the position of the subject. */
  readonly #subjects: { labels: string; values: Values; text: string }[] = [];
  #text = '';
  #hasChanged = false;

  constructor(family: Family<Subject>) {
    this.#family = family;
    this.#starts = family.samples.map(({ suffix = '' }) => `${family.name}${suffix}{`);
    this.#ends = family.samples.map(({ labels }) =>
      labels === undefined ? '} ' : `,${renderLabels(labels)}} `,
    );
  }

  set(position: number, labels: string, subject: Subject): void {
    const values = this.#family.values(subject);
    const last = this.#subjects[position];
    if (last?.labels === labels && areEqual(last.values, values)) return;
    this.#subjects[position] = { labels, values, text: this.#render(labels, values) };
    this.#hasChanged = true;
  }

  /** Returns the text of the family; empty without samples. */
  text(count: number): string {
    if (this.#hasChanged || count < this.#subjects.length) {
      this.#subjects.length = count;
      const lines = this.#subjects.map(({ text }) => text).join('');
      this.#text = lines === '' ? '' : header(this.#family) + lines;
      this.#hasChanged = false;
    }
    return this.#text;
  }

  #render(labels: string, values: Values): string {
    let lines = '';
    for (const [index, value] of values.entries()) {
      if (value === undefined) continue;
      lines += `${this.#starts[index]}${labels}${this.#ends[index]}${formatNumber(value)}\n`;
    }
    return lines;
  }
}

function areEqual(some: Values, others: Values): boolean {
  return some === others || some.every((value, index) => Object.is(value, others[index]));
}

/** Returns a gauge of one sample, whose labels are as `renderLabels` writes them; empty without a value. */
export function renderGauge(
  name: string,
  help: string,
  value: number | undefined,
  labels = '',
): string {
  if (value === undefined) return '';
  return `${header({ name, type: 'gauge', help })}${name}${labels === '' ? '' : `{${labels}}`} ${formatNumber(value)}\n`;
}

/** Converts epoch ms to Unix time in seconds. */
export function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function header({ name, type, help }: Pick<Family<never>, 'name' | 'type' | 'help'>): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function escapeLabelValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

function formatNumber(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}
