import { describe, expect, it } from 'vitest';
import type { LogLine, Run } from '../../../support/oracle/observation.ts';
import { type Change, edited, transitions, verdict, without } from './doctor.ts';
import { failure, move, polled, RIGHT, RUN, samplesOf, time, told, toldFailed } from './history.ts';

// The daemon was killed after the listing of second 3, before it logged that poll. The next one began with second 4.

const KILLED_MS = 3500;

const isBefore = (line: LogLine) => Date.parse(line.time) < KILLED_MS;
const tellsOfThird = (line: LogLine) =>
  line.time.startsWith(time(3).slice(0, 19)) && line.event !== 'prompt.failed';

/** Returns the two runs of the daemon, with these lines. */
function lives(
  before: readonly LogLine[],
  after: readonly LogLine[],
  more: Partial<Run> = { killed: true },
): readonly Run[] {
  return [
    { ...RUN, lines: before, ...more },
    { startedAt: KILLED_MS, killed: false, lines: after },
  ];
}

const before = RUN.lines.filter((line) => isBefore(line) && !tellsOfThird(line));
const after = RUN.lines.filter((line) => !isBefore(line));
const isFailure = ({ event }: LogLine) => event === 'prompt.failed';

/** Loses the listing of second 3: its transition is found in second 4. */
function lost(runs: readonly Run[]): Change {
  const rows = edited(RIGHT.transitions, { time: time(4, 10) }, 4);
  return {
    transitions: rows,
    samples: samplesOf(rows),
    failures: edited(RIGHT.failures, { time: time(4, 10) }, 4),
    journal: RIGHT.journal.map((entry) => ({ ...entry, unchanged: false })),
    runs,
  };
}

/** Lines of the transition of second 3 when it is found in second 4. */
const foundLater = [
  told(move(4, 4, ['a', 'RUNNING', 'FAILED'])),
  toldFailed(failure(4, 4, 'a'), 4),
];
const isOfFourth = (line: LogLine) => line.transition_id === 4;

describe('the oracle after a kill of the daemon', () => {
  it('accepts a last listing that was stored but not logged', () => {
    expect(verdict({ runs: lives(before, after) })).toBe('');
  });

  it('accepts a lost last listing if its poll was not logged', () => {
    const first = before.filter((line) => !isOfFourth(line));
    expect(verdict(lost(lives(first, [...after, ...foundLater])))).toBe('');
  });

  it('reports a lost listing whose poll was logged', () => {
    const first = RUN.lines.filter((line) => isBefore(line) && !isOfFourth(line));
    const runs = lives(first, [...after, ...foundLater]);
    expect(verdict(lost(runs))).toContain('prompts of "p": listing 3 ');
  });

  it('reports a lost listing before the last one', () => {
    const rows = transitions((all) => without(all, 1));
    expect(verdict(rows, { runs: lives(before, after) })).toContain('prompts of "p": listing 2 ');
  });

  it('reports a listing of which only half was stored', () => {
    const journal = RIGHT.journal.map((entry) =>
      entry.seq === 3
        ? { ...entry, items: [...entry.items.slice(0, 1), ['d', 'FAILED'] as const] }
        : entry,
    );
    expect(verdict({ journal, runs: lives(before, after) })).toContain(
      'prompts of "p": listing 3 ',
    );
  });

  it('reports a missing line of a transition whose poll was logged', () => {
    const first = [...before, polled(3)];
    expect(verdict({ runs: lives(first, after) })).toContain('no line of');
  });

  it('reports a missing line after an orderly stop', () => {
    expect(verdict({ runs: lives(before, after, {}) })).toContain('no line of');
  });

  it('accepts a failure that the next daemon logs again', () => {
    const again = before.filter(isFailure);
    expect(verdict({ runs: lives(before, [...after, ...again]) })).toBe('');
  });

  it('reports a failure that the same daemon logs twice', () => {
    const again = before.filter(isFailure);
    expect(verdict({ runs: lives([...before, ...again], after) })).toContain('2 lines of');
  });

  it('reports a failure that is logged again after an orderly stop', () => {
    const again = before.filter(isFailure);
    const runs = lives(RUN.lines.filter(isBefore), [...after, ...again], {});
    expect(verdict({ runs })).toContain('2 lines of');
  });

  it('reports a failure without a line', () => {
    const untold = before.filter((line) => !isFailure(line));
    expect(verdict({ runs: lives(untold, after) })).toContain('no line of');
  });
});

describe('the oracle on a listing that may not have arrived', () => {
  const about = { time: time(3, 15), project: 'p' };
  const lines = [...RUN.lines.filter((line) => !isOfFourth(line)), ...foundLater];
  const journal = RIGHT.journal.map((entry) => ({ ...entry, unchanged: false }));
  const withLine = (line: Partial<LogLine>) => [
    lost([{ ...RUN, lines: [...lines, { ...about, level: 'debug', ...line }] }]),
    { journal },
  ];

  it.each([
    ['its request was given up', { event: 'api.retried', reason: 'timeout' }],
    ['its poll was lost on the way', { event: 'poll.failed', level: 'error', reason: 'network' }],
    ['it could not be stored', { event: 'poll.failed', level: 'error', reason: 'store' }],
    ['the polls before it failed without a line', { event: 'poll.recovered' }],
  ])('accepts its loss if %s', (_, line) => {
    expect(verdict(...withLine(line))).toBe('');
  });

  it.each([
    ['another request was refused', { event: 'api.retried', reason: 'server_error' }],
    ['another project was not answered', { event: 'api.retried', reason: 'timeout', project: 'q' }],
    ['it was given up earlier', { event: 'api.retried', reason: 'timeout', time: time(2, 15) }],
  ])('reports its loss if only %s', (_, line) => {
    expect(verdict(...withLine(line))).toContain('prompts of "p": listing 3 ');
  });
});

describe('the oracle while the store cannot be written', () => {
  const lines = [...RUN.lines.filter((line) => !isOfFourth(line)), ...foundLater];
  const journal = RIGHT.journal.map((entry) => ({ ...entry, unchanged: false }));
  const failed: LogLine = { time: time(3, 18), level: 'error', event: 'store.commit_failed' };
  const change = lost([{ ...RUN, lines: [...lines, failed] }]);

  it('accepts a lost listing and the line of the failed commit', () => {
    const troubles = [{ from: 3000, to: 3500 }];
    expect(verdict(change, { journal, troubles })).toBe('');
  });

  it.each([
    ['before', { from: 1000, to: 3004 }],
    ['after', { from: 3019, to: 4000 }],
  ])('reports a listing lost %s that period, and the failed commit', (_, trouble) => {
    const found = verdict(change, { journal, troubles: [trouble] });
    expect(found).toContain('prompts of "p": listing 3 ');
    expect(found).toContain('an error: ');
  });
});
