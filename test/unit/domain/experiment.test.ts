import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Experiment,
  ExperimentChanges,
  isFinishing,
  nextExperiment,
} from '../../../src/domain/experiment.ts';
import type { KnownListing, KnownRecord, Listing } from '../../../src/domain/record.ts';
import { isUnfinished, PROMPT_STATUSES, type PromptStatus } from '../../../src/domain/status.ts';
import { compareListing } from '../../../src/domain/transition.ts';

type Items = Readonly<
  Record<string, readonly [status: PromptStatus, experiment?: string | undefined]>
>;

type Listed = Items | 'incomplete';

interface Shown {
  readonly at: number;
  readonly items: Items;
  readonly complete: boolean;
}

/** Polls a project whose prompts are gone after two listings without them. */
class Project {
  known: KnownListing = { baselined: false, records: new Map() };
  readonly experiments = new Map<string, Experiment>();

  /** Returns the experiments that finish, and those that a prompt moved in. */
  async poll({ at, items, complete }: Shown) {
    const records: Listing['records'] = new Map(
      Object.entries(items).map(([id, [status, experiment]]) => {
        const texts = { statusRaw: undefined, name: undefined, timestamp: undefined };
        return [id, { id, status, ...texts, experiment }];
      }),
    );
    const listing = { records, idsWithoutStatus: new Set<string>(), complete, anomalies: [] };
    const { changes } = await compareListing(this.known, listing, { at, missingAfter: 2 });
    const all = new Map(this.known.records);
    const found = new ExperimentChanges();
    for (const record of changes.records) {
      found.addRecord(all.get(record.id), record);
      all.set(record.id, record);
    }
    for (const { id, from, to } of changes.transitions) {
      found.addTransition(records.get(id)?.experiment, from, to);
    }
    this.known = { baselined: true, records: all };
    const changed = new Map(found.entries());
    const finished: string[] = [];
    for (const name of new Set([...this.experiments.keys(), ...changed.keys()])) {
      const before = this.experiments.get(name);
      // The store looks only at these.
      if (!changed.has(name) && !(before && isFinishing(before))) continue;
      const after = nextExperiment(before, changed.get(name), { at, complete });
      this.experiments.set(name, after);
      if (before?.finishedAt === undefined && after.finishedAt !== undefined) finished.push(name);
    }
    return { finished, transitions: changes.transitions };
  }

  /** Polls these listings, a second apart; `incomplete` is the last one again. Returns which experiments finish with each. */
  async all(...listings: readonly Listed[]): Promise<readonly string[]> {
    const finished: string[] = [];
    let items: Items = {};
    for (const [index, each] of listings.entries()) {
      const complete = each !== 'incomplete';
      if (complete) items = each;
      finished.push((await this.poll({ at: 1000 * (index + 1), items, complete })).finished.join());
    }
    return finished;
  }
}

const item = (status: PromptStatus, experiment = 'e') => [status, experiment] as const;
const RUNNING = { a: item('RUNNING') };
const COMPLETED = { a: item('COMPLETED') };
const FAILED = { a: item('FAILED') };

describe('an experiment finishes', () => {
  it('once, at the second poll in a row without unfinished prompts', async () => {
    const project = new Project();
    expect(await project.all(RUNNING, COMPLETED, COMPLETED, COMPLETED)).toEqual(['', '', 'e', '']);
    expect(project.experiments.get('e')).toMatchObject({
      counts: { COMPLETED: 1 },
      startedAt: 2000,
      movedAt: 2000,
      endedAt: 2000,
      finishedAt: 3000,
    });
  });

  it.each<readonly [what: string, listings: readonly Listed[], finished: readonly string[]]>([
    ['if its only prompt was new and had ended', [{}, COMPLETED, COMPLETED], ['', '', 'e']],
    ['not if no prompt was seen to move', [COMPLETED, COMPLETED, COMPLETED], ['', '', '']],
    [
      'not while another prompt waits',
      [RUNNING, { ...COMPLETED, b: item('PENDING') }, { ...COMPLETED, b: item('PENDING') }],
      ['', '', ''],
    ],
    [
      'not at a poll that shows a further move',
      [RUNNING, FAILED, COMPLETED, COMPLETED],
      ['', '', '', 'e'],
    ],
    [
      'not with a listing that may lack prompts',
      [RUNNING, COMPLETED, 'incomplete', COMPLETED],
      ['', '', '', 'e'],
    ],
    [
      'again, after a prompt ran again',
      [RUNNING, FAILED, FAILED, RUNNING, COMPLETED, COMPLETED],
      ['', '', 'e', '', '', 'e'],
    ],
    [
      'again, after a prompt ran again between two polls',
      [RUNNING, FAILED, FAILED, COMPLETED, COMPLETED],
      ['', '', 'e', '', 'e'],
    ],
    [
      'again, after a prompt came',
      [RUNNING, FAILED, FAILED, { ...FAILED, b: item('FAILED') }, { ...FAILED, b: item('FAILED') }],
      ['', '', 'e', '', 'e'],
    ],
    [
      'once if what has ended gets an unknown status',
      [RUNNING, COMPLETED, COMPLETED, { a: item('UNKNOWN') }, { a: item('UNKNOWN') }],
      ['', '', 'e', '', ''],
    ],
    [
      'with a prompt whose run led to an unknown status',
      [RUNNING, { a: item('UNKNOWN') }, { a: item('UNKNOWN') }],
      ['', '', 'e'],
    ],
    [
      'once its last running prompt is gone',
      [{ ...RUNNING, b: item('RUNNING') }, COMPLETED, COMPLETED, COMPLETED],
      ['', '', '', 'e'],
    ],
    ['not if all its prompts are gone', [{}, RUNNING, {}, {}, {}], ['', '', '', '', '']],
    [
      'under its new name only',
      [
        {},
        RUNNING,
        { a: item('RUNNING', 'f') },
        { a: item('COMPLETED', 'f') },
        { a: item('COMPLETED', 'f') },
      ],
      ['', '', '', '', 'f'],
    ],
    [
      'not again under another name',
      [RUNNING, COMPLETED, COMPLETED, { a: item('COMPLETED', 'f') }, { a: item('COMPLETED', 'f') }],
      ['', '', 'e', '', ''],
    ],
    [
      'beside another one',
      [
        { ...RUNNING, b: item('RUNNING', 'f') },
        { ...COMPLETED, b: item('RUNNING', 'f') },
        { ...COMPLETED, b: item('FAILED', 'f') },
        { ...COMPLETED, b: item('FAILED', 'f') },
      ],
      ['', '', 'e', 'f'],
    ],
    [
      'not if its prompts name none',
      [{ a: ['RUNNING'] }, { a: ['COMPLETED'] }, { a: ['COMPLETED'] }],
      ['', '', ''],
    ],
    [
      'not if its prompts only get its name, as after an upgrade',
      [{ a: ['COMPLETED'] }, COMPLETED, COMPLETED],
      ['', '', ''],
    ],
  ])('%s', async (_, listings, finished) => {
    expect(await new Project().all(...listings)).toEqual(finished);
  });

  it('with the time since it was reopened', async () => {
    const project = new Project();
    await project.all(RUNNING, COMPLETED, COMPLETED, RUNNING, COMPLETED, COMPLETED);
    expect(project.experiments.get('e')).toMatchObject({ startedAt: 4000, endedAt: 5000 });
  });

  it('also if the clock was set back', async () => {
    const project = new Project();
    const polls = [RUNNING, COMPLETED, COMPLETED].map((items, index) => {
      return { items, at: 9000 - index, complete: true };
    });
    const finished = [];
    for (const poll of polls) finished.push((await project.poll(poll)).finished.join());
    expect(finished).toEqual(['', '', 'e']);
  });
});

/** Listings of five prompts in up to two experiments. Times also go back. */
const shown = fc.record({
  at: fc.integer({ min: 1, max: 9 }),
  items: fc.dictionary(
    fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    fc.tuple(
      fc.constantFrom<PromptStatus>('RUNNING', 'COMPLETED', 'COMPLETED', 'FAILED', 'UNKNOWN'),
      fc.constantFrom('e', 'e', 'e', 'f', undefined),
    ),
    { noNullPrototype: true },
  ),
  complete: fc.boolean(),
});

/** The counts of an experiment, from its records. */
function recount(records: Iterable<KnownRecord>, name: string) {
  const own = [...records].filter(({ gone, experiment }) => !gone && experiment === name);
  return Object.fromEntries(
    PROMPT_STATUSES.map((each) => [each, own.filter(({ status }) => status === each).length]),
  );
}

it('experiments have the counts of their records, and finish by the rule', async () => {
  /** What was true of an experiment at each poll, `finished` by the rule. */
  interface Seen {
    readonly idle: boolean;
    readonly moved: boolean;
    readonly finished: boolean;
  }
  const repeated = fc.array(fc.tuple(shown, fc.integer({ min: 1, max: 4 })), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(repeated, async (some) => {
      const project = new Project();
      const history = new Map<string, Seen[]>([
        ['e', []],
        ['f', []],
      ]);
      for (const poll of some.flatMap(([each, times]) =>
        Array.from({ length: times }, () => each),
      )) {
        const { finished, transitions } = await project.poll(poll);
        for (const [name, seen] of history) {
          const counts = recount(project.known.records.values(), name);
          const { counts: counted } = project.experiments.get(name) ?? { counts: {} };
          expect({ ...recount([], name), ...counted }).toEqual(counts);
          const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
          const unfinished = (counts['PENDING'] ?? 0) + (counts['RUNNING'] ?? 0);
          const idle = total > 0 && unfinished === 0;
          const { finishedAt } = project.experiments.get(name) ?? {};
          expect(unfinished > 0 && finishedAt !== undefined).toBe(false);
          const moved = transitions.some(
            ({ id, from, to }) =>
              poll.items[id]?.[1] === name &&
              (to !== 'UNKNOWN' || from === 'NEW' || isUnfinished(from)),
          );
          const isUntold =
            seen.findLastIndex((each) => each.moved) > seen.findLastIndex((each) => each.finished);
          const isSecond = idle && seen.at(-1)?.idle === true && !moved;
          seen.push({ idle, moved, finished: poll.complete && isSecond && isUntold });
          expect(finished.includes(name)).toBe(seen.at(-1)?.finished);
        }
      }
    }),
    { numRuns: 1000 },
  );
});
