import { labelPairs, labelsOfFamily, scrapeOf } from '../../test/support/full-scrape.ts';
import type { ParsedFamily } from '../../test/unit/metrics/parse-exposition.ts';
import { LABELS_OF_FLEETING, SECTIONS, type Fact } from './facts.ts';
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
    `## Process and runtime\n\n${RUNTIME}\n\n${runtimeOf(families)}`,
    `## Useful queries\n\n${QUERIES}\n\n${queries()}`,
  ].join('\n\n');
}

const INTRODUCTION = `# Metrics

<!-- Generated: npm run generate -->

The metrics that \`GET /metrics\` exports in the text format 0.0.4, in gzip if the scraper accepts it. Names, types and labels are stable: changing one is a breaking change. For ready-made answers see [Useful queries](#useful-queries), [the dashboard](../config/grafana/dashboards/evalwatch.json) and [the alert rules](../config/prometheus/evalwatch.rules.yml).

- **from store**: the value is read from the store and survives a restart unchanged, totals included.
- **from process**: the value counts from 0 when the process starts.
- Every series of a configured project exists from the first scrape on, counters at 0, unless the table says when it is absent. The series of a project disappear when it is removed from the configuration. Metrics of datasets exist for projects with \`datasets: true\`.
- No label contains the id of a prompt or dataset, an error, a URL or a raw status. These are in the log. Names of experiments are labels only if \`metrics.experiments\` is set, for so many of each project.

**Without the store.** When the store cannot be read, or does not answer within 2 s, \`/metrics\` still answers 200. Of the series from the store, it then has only those that are in memory: \`evalwatch_project_up\`, \`evalwatch_project_consecutive_poll_failures\`, \`evalwatch_project_poll_failing\`, \`evalwatch_prompt_state_limit_seconds\` and \`evalwatch_prompt_state_typical_seconds\`; with several workers, only the worker that owns a project exports them. A failed read counts in \`evalwatch_store_commit_failures_total\` at once. A slow read counts only after the store has answered no scrape for 25 s, so a single slow scrape fires no alert.`;

const VALUES = `\`project\` is the id in the configuration. The other labels have only these values. All of them exist from the start, unless the metric is absent.`;

const RUNTIME = `Exported by prom-client, counted since the process started. Some exist on Linux only.`;

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

/** Lists the labels with a closed list of values; metrics with the same list share a row. */
function valuesOf(families: Families): string {
  const rows = new Map<string, { label: string; values: string; metrics: string[] }>();
  for (const [name, { samples }] of families) {
    if (!isOurs(name) || name.endsWith('_info')) continue;
    for (const [label, set] of valuesByLabel(samples.keys())) {
      if (label === 'project' || label === 'le') continue;
      const values = codes(set);
      const row = rows.get(`${label} ${values}`) ?? { label, values, metrics: [] };
      rows.set(`${label} ${values}`, row);
      row.metrics.push(name);
    }
  }
  return table(
    ['label', 'metrics', 'values'],
    [...rows.values()]
      .toSorted((a, b) => a.label.localeCompare(b.label, 'en'))
      .map(({ label, metrics, values }) => [code(label), codes(metrics), values]),
  );
}

function valuesByLabel(series: Iterable<string>): ReadonlyMap<string, ReadonlySet<string>> {
  const values = new Map<string, Set<string>>();
  for (const [label, value] of [...series].flatMap(labelPairs)) {
    values.set(label, (values.get(label) ?? new Set()).add(value));
  }
  return values;
}

function runtimeOf(families: Families): string {
  return table(
    ['metric', 'type', 'labels', 'meaning'],
    [...families]
      .filter(([name]) => !isOurs(name))
      .map(([name, family]) => [
        code(name),
        family.type,
        codes(LABELS_OF_FLEETING[name] ?? labelsOfFamily(family)),
        family.help,
      ]),
  );
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
