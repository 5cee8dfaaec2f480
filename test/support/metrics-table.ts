import { SECTIONS } from '../../scripts/metrics-doc/facts.ts';
import { labelPairs, scrapeOf } from './full-scrape.ts';

export interface MetricFact {
  readonly name: string;
  readonly type: string;
  readonly from: 'store' | 'process';
  /** One set of series per project, per project that watches datasets, or in all. */
  readonly per: 'project' | 'datasets' | 'process';
  /** Label sets besides the project; `{}` if there are none. */
  readonly labels: readonly Readonly<Record<string, string>>[];
  /** Bounds of a histogram's buckets. */
  readonly buckets: readonly string[];
  /** Whether it may be absent until something has happened. */
  readonly absentAtFirst: boolean;
}

const atFirst = await scrapeOf('never polled');
const later = await scrapeOf('everything happened');

/**
 * Every metric of evalwatch with a SQLite store, as documented and as a scrape of one project shows it; except
 * `evalwatch_build_info` and `evalwatch_store_info`, whose labels differ from build to build.
 */
export const METRICS: readonly MetricFact[] = SECTIONS.flatMap(({ title, metrics }) =>
  Object.entries(metrics).map(([name, { source, absentUntil, onlyWith }]) => {
    const family = atFirst.get(name) ?? later.get(name);
    const pairs = [...(family?.samples.keys() ?? [])].map((series) => labelPairs(series));
    const isOfProject = pairs.some((own) => own.some(([label]) => label === 'project'));
    const ofProject = title === 'Datasets' ? 'datasets' : 'project';
    const sets = pairs.map((own) =>
      Object.fromEntries(own.filter(([label]) => label !== 'project' && label !== 'le')),
    );
    const bounds = pairs.flatMap((own) => own.filter(([label]) => label === 'le'));
    return {
      name,
      type: family?.type ?? 'none',
      from: source,
      per: isOfProject ? ofProject : 'process',
      labels: [...new Map(sets.map((set) => [JSON.stringify(set), set])).values()],
      buckets: [...new Set(bounds.map(([, bound]) => bound))],
      absentAtFirst: absentUntil !== undefined,
      onlyWith,
    } as const;
  }),
).filter(
  ({ name, onlyWith }) =>
    onlyWith !== 'PostgreSQL' && !/^evalwatch_(?:build|store)_info$/.test(name),
);
