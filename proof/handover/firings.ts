import { parse, stringify } from 'yaml';
import { promtoolOutput, samplesIn } from '../promtool.ts';
import { type Fleet, seriesOf, STEP } from './fleet.ts';
import { samplesOf } from './projects.ts';

/** Seconds between two evaluations. */
export const EVALUATED_EVERY = 15;

/** Seconds at which an alert begins to fire for the first time and ends for the last time, and how often it begins. */
export interface Firing {
  readonly from: number;
  /** Infinity if it still fires at the end. */
  readonly to: number;
  readonly times: number;
}

/** Always fires; if it is absent, the output of promtool was not understood. */
const WATCHDOG = 'EvalwatchWatchdog';

/** Firings by the label values of the alert. */
export type Firings = ReadonlyMap<string, Firing>;

/**
 * Evaluates the rules over the scrapes of this fleet.
 * @throws if promtool cannot evaluate the rules
 */
export async function firingsOf(promtool: string, rules: string, fleet: Fleet): Promise<Firings> {
  const firing = 'ALERTS{alertstate="firing"}';
  const before = `${firing} offset ${EVALUATED_EVERY}s`;
  const by = 'max by (alertname, instance, project, status, error_id, team, cause)';
  const range = `[${fleet.seconds + 60}s]`;
  const expressions = {
    from: `${by} (min_over_time(began${range}))`,
    to: `${by} (max_over_time(ended${range}))`,
    times: `${by} (count_over_time(began${range}))`,
    last: `${by} (${firing})`,
  };
  const edges = [
    { record: 'began', expr: `timestamp(${firing} unless ${before})` },
    { record: 'ended', expr: `timestamp(${before} unless ${firing})` },
  ];
  const output = await promtoolOutput(promtool, {
    'evalwatch.rules.yml': withoutAnnotations(rules),
    'edges.rules.yml': stringify({ groups: [{ name: 'edges', rules: edges }] }),
    'fleet.test.yml': JSON.stringify({
      rule_files: ['evalwatch.rules.yml', 'edges.rules.yml'],
      evaluation_interval: `${EVALUATED_EVERY}s`,
      group_eval_order: ['evalwatch', 'evalwatch-failures', 'edges'],
      tests: [
        {
          interval: `${STEP}s`,
          input_series: seriesOf(fleet, samplesOf),
          // Nothing is expected, so promtool prints what there is.
          promql_expr_test: Object.values(expressions).map((expr) => ({
            expr,
            eval_time: `${fleet.seconds}s`,
          })),
        },
      ],
    }),
  });
  const from = samplesIn(output, expressions.from);
  const to = samplesIn(output, expressions.to);
  const times = samplesIn(output, expressions.times);
  const last = samplesIn(output, expressions.last);
  if (!last.has(WATCHDOG)) throw new Error(`promtool printed ${output.slice(0, 2000)}`);
  from.delete(WATCHDOG);
  return new Map(
    [...from].map(([alert, began]) => {
      const end = last.has(alert) ? Infinity : (to.get(alert) ?? 0);
      return [alert, { from: began, to: end, times: times.get(alert) ?? 0 }];
    }),
  );
}

/** Returns the rules without annotations, which only take time. */
function withoutAnnotations(rules: string): string {
  const { groups } = parse(rules) as {
    groups: readonly { rules: readonly { annotations?: unknown }[] }[];
  };
  return stringify(
    {
      groups: groups.map((group) => ({
        ...group,
        rules: group.rules.map((rule) => ({ ...rule, annotations: undefined })),
      })),
    },
    { lineWidth: 0 },
  );
}
