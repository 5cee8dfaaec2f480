import { labelPairs, labelsOfFamily, scrapeOf } from '../../test/support/full-scrape.ts';
import type { ParsedFamily } from '../../test/unit/metrics/parse-exposition.ts';
import { SECTIONS, type Fact } from './facts.ts';
import { USEFUL_QUERIES } from './queries.ts';

type Families = ReadonlyMap<string, ParsedFamily>;

/**
 * Builds docs/metrics.md from a scrape and the facts that a scrape does not contain.
 * @throws {Error} when the facts and the exported metrics differ
 */
export async function metricsDocument(): Promise<string> {
  const families = await scrapeOf('everything happened');
  const atFirst = await scrapeOf('never polled');
  requireSameMetrics(families);
  requireSameAbsences(families, atFirst);
  return [
    INTRODUCTION,
    ...SECTIONS.map(({ title, metrics }) => `## ${title}\n\n${tableOf(metrics, families)}`),
    `## Buckets\n\n${bucketsOf(families)}`,
    `## Values of labels\n\n${VALUES}\n\n${valuesOf(families)}`,
    `## Process and runtime\n\n${RUNTIME}`,
    `## Useful queries\n\n${QUERIES}\n\n${queries()}`,
  ].join('\n\n');
}

const INTRODUCTION = `# Metrics

<!-- Generated: npm run generate -->

The metrics of \`GET /metrics\`. Names, types and labels are stable: changing one is a breaking change. See also [useful queries](#useful-queries), [the dashboard](../config/grafana/dashboards/evalwatch.json) and [the alert rules](../config/prometheus/evalwatch.rules.yml).

- **from store**: the value is read from the store and survives a restart unchanged, totals included.
- **from process**: the value counts from 0 when the process starts.
- Every series of a configured project exists from the first scrape on, counters at 0, unless the table says when it is absent. The series of a project disappear when it is removed from the configuration. Metrics of datasets exist for projects with \`datasets: true\`. With several workers, only the owner of a project exports its series.
- No label contains the id of a prompt or dataset, a message, a URL or a raw status. These are in the log.

**Without the store.** When the store does not answer within 2 s, \`/metrics\` still answers 200. Of the series from the store, it then has \`evalwatch_project_up\`, \`evalwatch_project_consecutive_poll_failures\` and \`evalwatch_project_poll_failing\`, which are up to date even then, and the limits and typical times of projects. \`evalwatch_store_commit_failures_total\` counts a failed read at once, and a slow one only at the third scrape in a row that the store does not answer in time.`;

/** Labels whose values come from the configuration or the service, and the bounds of histograms. */
const OPEN_LABELS = new Set(['project', 'receiver', 'error_id', 'experiment', 'le']);

const VALUES = `\`project\` is the id and \`receiver\` the name in the configuration; \`error_id\` and \`experiment\` come from the service. The other labels have only these values, which exist from the start unless the metric is absent:`;

const RUNTIME = `prom-client adds \`process_*\` (CPU time, memory, file descriptors, start time) and \`nodejs_*\` (lag of the event loop, heap, garbage collection, active resources). Watch \`nodejs_eventloop_lag_p99_seconds\` and \`process_resident_memory_bytes\`. Some exist on Linux only.`;

const QUERIES = `The queries work for one daemon and for several workers. A project whose owner changes continues on another target, so aggregate by project: values from the store with \`max by (project, …)\`, because two workers can show a project for one scrape interval, and values from the process with \`sum by (…) (rate(…))\`.`;

function requireSameMetrics(families: Families): void {
  const described = SECTIONS.flatMap(({ metrics }) => Object.keys(metrics));
  const exported = [...families.keys()].filter(isOurs);
  const undocumented = exported.filter((name) => !described.includes(name));
  const missing = described.filter((name) => !exported.includes(name));
  if (undocumented.length > 0) {
    throw new Error(`scripts/metrics-doc/facts.ts lacks ${undocumented.join(', ')}`);
  }
  if (missing.length > 0) {
    throw new Error(`the scrape of test/support/full-scrape.ts lacks ${missing.join(', ')}`);
  }
}

function requireSameAbsences(families: Families, atFirst: Families): void {
  for (const [name, fact] of SECTIONS.flatMap(({ metrics }) => Object.entries(metrics))) {
    const isOptional = fact.absentUntil !== undefined || fact.onlyWith === 'PostgreSQL';
    if (isOptional === atFirst.has(name) || !families.has(name)) {
      throw new Error(`the facts are wrong on when ${name} is absent`);
    }
  }
}

function tableOf(metrics: Readonly<Record<string, Fact>>, families: Families): string {
  return table(
    ['metric', 'type', 'labels', 'from', 'meaning'],
    Object.entries(metrics).map(([name, { source, absentUntil, onlyWith, note }]) => {
      const family = familyOf(name, families);
      const absence = absentUntil === undefined ? undefined : `Absent until ${absentUntil}.`;
      const engine = onlyWith === undefined ? undefined : `Only with ${onlyWith}.`;
      const meaning = [family.help, note, absence, engine]
        .filter((text) => text !== undefined)
        .join(' ');
      return [code(name), family.type, codes(labelsOfFamily(family)), source, meaning];
    }),
  );
}

function bucketsOf(families: Families): string {
  const histograms = [...families].filter(
    ([name, { type }]) => isOurs(name) && type === 'histogram',
  );
  return table(
    ['histogram', 'upper bounds'],
    histograms.map(([name, { samples }]) => [
      code(name),
      [...(valuesByLabel(samples.keys()).get('le') ?? [])].filter((le) => le !== '+Inf').join(' '),
    ]),
  );
}

/** Lists the labels with a closed list of values; metrics with the same list share a line. */
function valuesOf(families: Families): string {
  const lines = new Map<string, { label: string; values: string; metrics: string[] }>();
  for (const [name, { samples }] of families) {
    if (!isOurs(name) || name.endsWith('_info')) continue;
    for (const [label, set] of valuesByLabel(samples.keys())) {
      if (OPEN_LABELS.has(label)) continue;
      const values = codes(set);
      const line = lines.get(`${label} ${values}`) ?? { label, values, metrics: [] };
      lines.set(`${label} ${values}`, line);
      line.metrics.push(name);
    }
  }
  return [...lines.values()]
    .toSorted((a, b) => a.label.localeCompare(b.label, 'en'))
    .map(({ label, metrics, values }) => `- ${code(label)} of ${codes(metrics)}: ${values}`)
    .join('\n');
}

function valuesByLabel(series: Iterable<string>): ReadonlyMap<string, ReadonlySet<string>> {
  const values = new Map<string, Set<string>>();
  for (const [label, value] of [...series].flatMap(labelPairs)) {
    values.set(label, (values.get(label) ?? new Set()).add(value));
  }
  return values;
}

function queries(): string {
  return USEFUL_QUERIES.map(
    ({ question, query }) => `${question}\n\n\`\`\`promql\n${query}\n\`\`\``,
  ).join('\n\n');
}

function isOurs(name: string): boolean {
  return name.startsWith('evalwatch_');
}

function familyOf(name: string, families: Families): ParsedFamily {
  const family = families.get(name);
  if (family === undefined) throw new Error(`no metric ${name}`);
  return family;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function code(text: string): string {
  return `\`${text}\``;
}

function codes(texts: Iterable<string>): string {
  return [...texts].map(code).join(' ');
}
