import { describe, expect, it } from 'vitest';
import type { LogLine } from '../../../support/oracle/observation.ts';
import { type Change, edited, lines, verdict } from './doctor.ts';
import { failure, move, RIGHT, time, told, toldFailed } from './history.ts';

type Pick = (line: LogLine) => boolean;

const lineOf =
  (event: string, id?: number): Pick =>
  (line) =>
    line.event === event && line.transition_id === id;
const less = (pick: Pick) => lines((all) => all.filter((line) => !pick(line)));
const twice = (pick: Pick) => lines((all) => [...all, ...all.filter(pick)]);
const plus = (line: LogLine) => lines((all) => [...all, line]);
const changed = (pick: Pick, fields: Partial<LogLine>) =>
  lines((all) => all.map((line) => (pick(line) ? { ...line, ...fields } : line)));

const failed = lineOf('prompt.failed', 4);
const other = { error_id: 'F', error_msg: 'of another one' };
const untold = { error_info: null, reason: 'not_found' };

function failures(fields: Partial<(typeof RIGHT.failures)[0]>): Change {
  return { failures: edited(RIGHT.failures, fields, 4) };
}

describe('the oracle on failures', () => {
  it.each<readonly [what: string, difference: string, change: Change]>([
    ['a lost one', '0 failures for', { failures: RIGHT.failures.slice(1) }],
    ['a doubled one', '2 failures for', { failures: [...RIGHT.failures, ...RIGHT.failures] }],
    [
      'one without a move to FAILED',
      'no move to FAILED',
      { failures: [...RIGHT.failures, failure(7, 7, 'a')] },
    ],
    ['one of another prompt', 'failure of', failures({ prompt_id: 'd' })],
    ['one of another time', 'failure of', failures({ time: time(4) })],
    ['one that is logged but not settled', 'told, not settled', failures({ settled: false })],
    ['one settled otherwise than logged', 'settled otherwise than told', failures(untold)],
    ['one without its line', 'no line of', less(failed)],
    ['one with two lines', '2 lines of', twice(failed)],
    ['a line without a failure', 'no move to FAILED', plus(toldFailed(failure(7, 7, 'a'), 7))],
    ['a line of another prompt', 'line of another failure', changed(failed, { prompt_id: 'd' })],
    [
      'an error_info that was never served',
      'not what was served',
      { ...failures({ error_info: other }), ...changed(failed, { error_info: other }) },
    ],
    [
      'a line that gave up too soon',
      'not what was served',
      { ...failures(untold), ...changed(failed, untold) },
    ],
  ])('notices %s', (_, difference, change) => {
    expect(verdict(change)).toContain(difference);
  });

  it('expects no line for a pending one', () => {
    const pending = { settled: false, error_info: null };
    expect(verdict(failures(pending), less(failed))).toBe('');
  });

  it('accepts one that was given up after five minutes', () => {
    const late = { ...untold, time: time(3 + 300, 10) };
    expect(verdict(failures(untold), changed(failed, late))).toBe('');
  });
});

describe('the oracle on log lines', () => {
  it.each([
    ["a transition's lost one", 'no line of', less(lineOf('prompt.transition', 1))],
    ["a dataset's lost one", 'no line of', less(lineOf('dataset.transition', 3))],
    ["a transition's second one", 'told twice', twice(lineOf('prompt.transition', 1))],
    ['one of no transition', 'told, not recorded', plus(told(move(9, 7, ['d', 'NEW', 'RUNNING'])))],
    [
      'a wrong one',
      'told, not recorded',
      changed(lineOf('prompt.transition', 1), { to: 'FAILED' }),
    ],
    ["a gone prompt's lost one", '0 lines of gone', less(lineOf('prompt.gone'))],
    ["a gone prompt's second one", '2 lines of gone', twice(lineOf('prompt.gone'))],
    ['a second baseline', '2 baselines', twice(lineOf('project.baseline'))],
    ['an error', 'an error', plus({ time: time(5), level: 'error', event: 'store.commit_failed' })],
  ])('notices %s', (_, difference, change) => {
    expect(verdict(change)).toContain(difference);
  });
});
