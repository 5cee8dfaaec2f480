import { parse, stringify } from 'yaml';
import { promtoolOutput, samplesIn } from '../promtool.ts';
import type { Traffic } from './traffic.ts';

/** Objective of every project. */
export const OBJECTIVE = 0.2;

/** Firings of an alert for a project. */
export interface Firings {
  /** Minute of the first evaluation at which the alert fires; absent if it never does. */
  readonly first?: number;
  /** How often the alert begins to fire. */
  readonly times: number;
}

/** Always fires; its absence means that the output of promtool was not understood. */
const WATCHDOG = 'EvalwatchWatchdog';

/** A rules file, and the alerts of interest. */
interface Engine<Alert extends string> {
  readonly promtool: string;
  readonly rules: string;
  readonly alerts: readonly Alert[];
  /** Minutes between two scrapes, and between two evaluations. */
  readonly step: number;
}

/**
 * Runs the rules over the traffic in promtool. Returns when an alert fires, for each project in their order.
 * @throws if promtool cannot evaluate the rules
 */
export async function firingsOf<Alert extends string>(
  { promtool, rules, alerts, step }: Engine<Alert>,
  projects: readonly Traffic[],
): Promise<(alert: Alert) => readonly Firings[]> {
  const last = (Math.max(...projects.map(({ failed }) => failed.length)) - 1) * step;
  const first = `min by (alertname, project) (min_over_time(began[${last + 1}m]))`;
  const times = `sum by (alertname, project) (count_over_time(began[${last + 1}m]))`;
  const firing = 'ALERTS{alertstate="firing"}';
  const files = {
    'evalwatch.rules.yml': neededFor(new Set([...alerts, WATCHDOG]), rules),
    // A series for each alert and project, with a sample for each time that the alert begins to fire.
    'began.rules.yml': rulesFile([
      { record: 'began', expr: `timestamp(${firing} unless ${firing} offset ${step}m)` },
    ]),
    'traffic.test.yml': stringify(
      {
        rule_files: ['evalwatch.rules.yml', 'began.rules.yml'],
        evaluation_interval: `${step}m`,
        group_eval_order: ['evalwatch', 'evalwatch-failures', 'began'],
        tests: [
          {
            interval: `${step}m`,
            input_series: projects.flatMap((traffic, index) => seriesOf(traffic, `p${index}`)),
            // No samples are expected, so promtool prints the actual ones.
            promql_expr_test: [first, times].map((expr) => ({ expr, eval_time: `${last}m` })),
          },
        ],
      },
      { lineWidth: 0 },
    ),
  };
  const output = await promtoolOutput(promtool, files);
  const firsts = samplesIn(output, first);
  const counts = samplesIn(output, times);
  if (!firsts.has(WATCHDOG)) throw new Error(`promtool printed ${output.slice(0, 2000)}`);
  return (alert) =>
    projects.map((_, index) => {
      const began = firsts.get(`${alert} p${index}`);
      if (began === undefined) return { times: 0 };
      return { first: began / 60, times: counts.get(`${alert} p${index}`) ?? 0 };
    });
}

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
}

/** Returns the rules file without the rules that these alerts do not need, to save time. */
function neededFor(alerts: ReadonlySet<string>, rules: string): string {
  const { groups } = parse(rules) as {
    groups: readonly { name: string; rules: readonly Rule[] }[];
  };
  const needed = new Set(alerts);
  const isNeeded = ({ record = '', alert = '' }: Rule) => needed.has(record) || needed.has(alert);
  for (let before = -1; before < needed.size;) {
    before = needed.size;
    for (const rule of groups.flatMap((group) => group.rules)) {
      if (!isNeeded(rule)) continue;
      for (const [name] of rule.expr.matchAll(/\b\w+(?::\w+)+\b/g)) needed.add(name);
    }
  }
  const kept = groups.map((group) => ({ ...group, rules: group.rules.filter(isNeeded) }));
  return stringify({ groups: kept }, { lineWidth: 0 });
}

function rulesFile(rules: readonly Rule[]): string {
  return stringify({ groups: [{ name: 'began', rules }] }, { lineWidth: 0 });
}

function seriesOf({ failed, completed }: Traffic, project: string) {
  const target = `job="evalwatch",instance="a",project="${project}"`;
  const total = (to: string) =>
    `evalwatch_prompt_transitions_total{${target},from="RUNNING",to="${to}"}`;
  return [
    { series: total('FAILED'), values: valuesOf(failed) },
    { series: total('COMPLETED'), values: valuesOf(completed) },
    {
      series: `evalwatch_project_max_failure_ratio{${target}}`,
      values: `${OBJECTIVE}x${failed.length - 1}`,
    },
  ];
}

/** Writes totals in the notation of promtool, in which `7x2` stands for three values. */
function valuesOf(totals: readonly number[]): string {
  const runs: string[] = [];
  for (let start = 0; start < totals.length;) {
    const value = totals[start];
    let end = start + 1;
    while (totals[end] === value) end += 1;
    runs.push(`${value}x${end - start - 1}`);
    start = end;
  }
  return runs.join(' ');
}
