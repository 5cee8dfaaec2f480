import { parseExposition, type ParsedFamily } from '../unit/metrics/parse-exposition.ts';

export interface Scrape {
  readonly status: number;
  readonly contentType: string | null;
  readonly text: string;
  readonly families: ReadonlyMap<string, ParsedFamily>;
  /** Values by name and labels, as in `name{a="1"}`. */
  readonly samples: ReadonlyMap<string, number>;
  /** The value of a series; undefined if it is absent. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

/** Scrapes as Prometheus does, and throws on what Prometheus rejects. */
export async function scrape(url: string): Promise<Scrape> {
  const answer = await fetch(`${url}/metrics`);
  const text = await answer.text();
  const families = parseExposition(text);
  const samples = new Map(
    families
      .values()
      .flatMap((family) => family.samples)
      .toArray(),
  );
  return {
    status: answer.status,
    contentType: answer.headers.get('content-type'),
    text,
    families,
    samples,
    value: (name, labels = {}) => samples.get(seriesName(name, labels)),
  };
}

/** Returns `name{a="1",b="2"}`, as in the exposition. */
export function seriesName(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`;
}
