/** Strict parser of the text format 0.0.4 that rejects what Prometheus or promtool would. */

export interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  /** Values by name and labels, as in `name{a="1"}`. */
  readonly samples: ReadonlyMap<string, number>;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"`;
const VALUE = String.raw`-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[+-]Inf|NaN`;
const SAMPLE = new RegExp(`^(${NAME})(\\{${LABEL}(?:,${LABEL})*\\})? (${VALUE})$`);

/** @throws {Error} naming the first line or series that is wrong */
export function parseExposition(text: string): ReadonlyMap<string, ParsedFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, { type: string; help: string; samples: Map<string, number> }>();
  const done = new Set<string>();
  let current = '';
  let help: readonly [name: string, help: string] | undefined;
  for (const line of text.split('\n')) {
    // prom-client separates its metrics by empty lines.
    if (line === '') continue;
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (done.has(name)) throw new Error(`second time: ${line}`);
      done.add(name);
      help = [name, rest];
    } else if (keyword === 'TYPE') {
      if (help?.[0] !== name) throw new Error(`TYPE without HELP: ${line}`);
      families.set(name, { type: rest, help: help[1], samples: new Map() });
      current = name;
    } else {
      addSample(families.get(current)?.samples, current, families.get(current)?.type, line);
    }
  }
  for (const [name, { type }] of families) {
    if (type === 'counter' && !name.endsWith('_total')) throw new Error(`${name} lacks _total`);
    if (type !== 'counter' && name.endsWith('_total')) throw new Error(`${name} is no counter`);
  }
  return families;
}

function addSample(
  samples: Map<string, number> | undefined,
  family: string,
  type: string | undefined,
  line: string,
): void {
  const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
  const suffixes = { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] };
  const allowed = suffixes[type as 'histogram' | 'summary'] ?? [''];
  if (samples === undefined || !allowed.some((suffix) => name === family + suffix)) {
    throw new Error(`not a sample of ${family}: ${line}`);
  }
  const series = name + labels;
  if (samples.has(series)) throw new Error(`twice: ${line}`);
  samples.set(series, Number(value.replace('Inf', 'Infinity')));
}
