import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export const CONFIG = join(import.meta.dirname, '../../../config');
export const RUNBOOKS = join(import.meta.dirname, '../../../docs/runbooks');
const RULES_FILE = join(CONFIG, 'prometheus/evalwatch.rules.yml');

interface RecordingRule {
  readonly record: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
}

interface AlertingRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook_url: string;
  };
}

interface RulesFile {
  readonly groups: readonly {
    readonly name: string;
    readonly rules: readonly (RecordingRule | AlertingRule)[];
  }[];
}

/** The shipped rules, whose form promtool checks. */
export const groups = (parse(readFileSync(RULES_FILE, 'utf8')) as RulesFile).groups;
const rules = groups.flatMap((group) => group.rules);
export const alerts = rules.filter((rule) => 'alert' in rule);
export const recordings = rules.filter((rule) => 'record' in rule);
