import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RULES_FILE } from '../../test/unit/prometheus/rules-file.ts';
import { debianTool } from '../../test/support/debian-tool.ts';
import type { Scrape } from '../../test/support/scrape.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { required } from '../row.ts';

const FAILURES = 'evalwatch_store_commit_failures_total';
const FIRING = 'count(ALERTS{alertname="EvalwatchStoreWriteFailing",alertstate="firing"})';
const MINUTE_S = 60;

/** Input of the alert in one scrape. */
export interface CommitFailures {
  readonly count: number;
  /** By name and labels. */
  readonly samples: ReadonlyMap<string, number>;
}

export function commitFailuresOf(samples: Scrape['samples']): CommitFailures {
  const own = new Map([...samples].filter(([series]) => series.startsWith(`${FAILURES}{`)));
  return { count: own.values().reduce((sum, value) => sum + value, 0), samples: own };
}

/**
 * Gives the scraped samples to the shipped alert, one a minute, then half an hour without a change. The alert must be quiet
 * before the first failure, fire 3 minutes after it, and be quiet again at the end. Returns a summary.
 * @throws if it does not
 */
export async function followAlert(seen: readonly CommitFailures[]): Promise<string> {
  const promtool = required('promtool', debianTool('prometheus', 'promtool'));
  const first = seen.findIndex(({ count }) => count > 0);
  if (first < 0) throw new Error('no scrape shows a failed commit');
  const names = [...(seen.at(-1)?.samples.keys() ?? [])];
  const labelled = (series: string) =>
    `${series.replace('}', ',')}job="evalwatch",instance="evalwatch:10570"}`;
  const firesAt = first + 3;
  const quietAt = seen.length + 20;
  const test = {
    rule_files: [RULES_FILE],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: [
          ...names.map((series) => ({
            series: labelled(series),
            values: [
              ...seen.map(({ samples }) => samples.get(series) ?? '_'),
              `${seen.at(-1)?.samples.get(series) ?? 0}x30`,
            ].join(' '),
          })),
          { series: labelled('process_start_time_seconds{}').replace('{,', '{'), values: '0x60' },
        ],
        promql_expr_test: [
          ...(first > 0 ? [{ expr: FIRING, eval_time: minutes(first - 1), exp_samples: [] }] : []),
          {
            expr: FIRING,
            eval_time: minutes(firesAt),
            exp_samples: [{ labels: '{}', value: 1 }],
          },
          { expr: FIRING, eval_time: minutes(quietAt), exp_samples: [] },
        ],
      },
    ],
  };
  await using directory = await temporaryDirectory();
  const file = join(directory.path, 'alert.test.yml');
  // JSON is valid YAML.
  await writeFile(file, JSON.stringify(test));
  await promisify(execFile)(promtool, ['test', 'rules', file]);
  return `quiet before the first failed commit, firing ${firesAt - first} minutes after it, quiet again`;
}

function minutes(count: number): string {
  return `${count * MINUTE_S}s`;
}
