import { describe, expect, it } from 'vitest';
import { errorTotalsOf } from '../../../support/oracle/error-totals.ts';
import type { ErrorTotals } from '../../../support/oracle/observation.ts';
import { checkGrowth } from '../../../support/oracle/totals.ts';
import { type Change, sample, verdict } from './doctor.ts';
import { RIGHT, time } from './history.ts';

const [first, ...others] = RIGHT.statuses;
const b = { project: 'p', prompt_id: 'b', status: 'FAILED', since: time(2, 10), missing: 1 };

function statuses(fields: Partial<typeof b>): Change {
  return { statuses: [{ ...b, ...first, ...fields }, ...others] };
}

describe('the oracle on the final state', () => {
  it.each<readonly [what: string, change: Change, difference: string]>([
    ['a wrong status', statuses({ status: 'RUNNING' }), 'does not follow from'],
    ['a wrong time of the last change', statuses({ since: time(6) }), 'does not follow from'],
    ['a prompt that is missing', statuses({ missing: 1 }), 'at the end'],
    ['a prompt that is still there', { statuses: [...RIGHT.statuses, b] }, 'at the end'],
    ['a prompt that is not there', { statuses: others }, 'at the end'],
  ])('notices %s', (_, change, difference) => {
    expect(verdict(change)).toContain(difference);
  });

  it.each([
    ['prompt_transitions_total', { from: 'RUNNING', to: 'FAILED' }, 3, 'transitions: 2'],
    ['prompt_transitions_total', { from: 'NEW', to: 'PENDING' }, undefined, 'transitions: 0'],
    ['dataset_transitions_total', { from: 'NONE', to: 'RUNNING' }, 0, 'transitions: 1'],
    ['prompts', { status: 'COMPLETED' }, 3, 'at the end'],
    ['prompts', { status: 'PENDING' }, 1, 'at the end'],
    ['prompts_missing', {}, 1, 'at the end'],
    ['prompts_gone_total', {}, 2, 'at the end'],
    ['datasets', { status: 'RUNNING' }, 2, 'at the end'],
    ['prompt_last_failure_timestamp_seconds', {}, 5, 'last failure: 7010 ms'],
    ['prompt_last_failure_timestamp_seconds', {}, undefined, 'last failure: 7010 ms'],
    ['dataset_last_failure_timestamp_seconds', {}, 5, 'last failure: undefined'],
  ])('notices a wrong evalwatch_%s%o of %s', (name, labels, value, difference) => {
    const pairs = Object.entries({ project: 'p', ...labels }).map(
      ([key, text]) => `${key}="${text}"`,
    );
    expect(verdict(sample(`evalwatch_${name}{${pairs.join(',')}}`, value))).toContain(difference);
  });

  it.each<readonly [what: string, errorTotals: ErrorTotals, difference: string]>([
    ['one more', new Map([['E of "p"', 4]]), '4 counted, 3 settled'],
    ['one less', new Map([['E of "p"', 2]]), '2 counted, 3 settled'],
    ['another error_id', new Map([['F of "p"', 3]]), '3 counted, undefined settled'],
    ['none', new Map(), 'undefined counted, 3 settled'],
  ])('notices a wrong count of failures by error_id: %s', (_, errorTotals, difference) => {
    expect(verdict({ errorTotals })).toContain(difference);
  });

  it('accepts the right counts of failures', () => {
    const series = 'evalwatch_prompt_failures_total{project="p",error_id="E"}';
    expect(verdict({ errorTotals: errorTotalsOf(new Map([[series, 3]])) })).toBe('');
  });

  it.each([
    ['grows', 3, []],
    ['stays', 2, []],
    ['shrinks', 1, [expect.stringContaining('from 2 to 1')]],
    ['vanishes', undefined, [expect.stringContaining('from 2 to undefined')]],
  ])('reports a counter only if it shrinks or vanishes: it %s', (_, value, found) => {
    const series = 'evalwatch_prompt_transitions_total{project="p",from="RUNNING",to="FAILED"}';
    expect(checkGrowth(RIGHT.samples, sample(series, value).samples ?? new Map())).toEqual(found);
  });
});
