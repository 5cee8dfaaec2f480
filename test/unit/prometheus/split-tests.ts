import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { canHaveResult } from '../../support/promql.ts';
import { RULES_FILE } from './rules-file.ts';

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
}

interface Group {
  readonly rules: readonly Rule[];
}

interface Suite {
  readonly tests: readonly { readonly input_series: readonly { readonly series: string }[] }[];
}

/** A test of the rules as a file of its own, whose text `test` returns for the path of the rules. */
interface SplitTest {
  readonly rules: string;
  readonly test: (rulesFile: string) => string;
}

/** Keeps `0x4`, which is five zeros for promtool, from being read as the number 4. */
const AS_WRITTEN = { schema: 'failsafe' } as const;
const { groups } = parse(readFileSync(RULES_FILE, 'utf8'), AS_WRITTEN) as {
  readonly groups: readonly Group[];
};

/**
 * Splits a file of rule tests, and leaves out of the rules of each test those that cannot have a result with its series.
 * promtool evaluates every rule at every step, which is most of what the tests cost.
 */
export function splitTests(text: string): readonly SplitTest[] {
  const suite = parse(text, AS_WRITTEN) as Suite;
  return suite.tests.map((test) => {
    const metrics = test.input_series.map(({ series }) => series.replace(/\{.*/s, ''));
    return {
      rules: stringify({ groups: effectiveRules(metrics) }, AS_WRITTEN),
      test: (rulesFile) =>
        stringify({ ...suite, rule_files: [rulesFile], tests: [test] }, AS_WRITTEN),
    };
  });
}

/** Returns the rules that can have a result if there are series of these metrics. */
function effectiveRules(metrics: readonly string[]): readonly Group[] {
  const known = new Set(metrics);
  const hasSeries = (metric: string, selector: string) => {
    if (metric !== 'ALERTS' && metric !== 'ALERTS_FOR_STATE') {
      return metric === '' || known.has(metric);
    }
    const name = /alertname="(\w+)"/.exec(selector)?.[1];
    return name === undefined || known.has(metric) || known.has(name);
  };
  const rules = groups.flatMap((group) => group.rules);
  // A rule can read what a later one records, so this repeats until no metric is added.
  let before: number;
  do {
    before = known.size;
    for (const { alert, record = alert ?? '', expr } of rules) {
      if (!known.has(record) && canHaveResult(expr, hasSeries)) known.add(record);
    }
  } while (known.size > before);
  return groups
    .map((group) => ({
      ...group,
      rules: group.rules.filter(({ expr }) => canHaveResult(expr, hasSeries)),
    }))
    .filter((group) => group.rules.length > 0);
}
