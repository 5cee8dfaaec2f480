import { describe, expect, it } from 'vitest';
import {
  type Experiment,
  ExperimentChanges,
  isFinishing,
  nextExperiment,
} from '../../../src/domain/experiment.ts';
import type { KnownListing, Listing } from '../../../src/domain/record.ts';
import type { PromptStatus } from '../../../src/domain/status.ts';
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

  /** Returns the experiments that finish. */
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
    return finished;
  }

  /** Polls these listings, a second apart; `incomplete` is the last one again. Returns which experiments finish with each. */
  async all(...listings: readonly Listed[]): Promise<readonly string[]> {
    const finished: string[] = [];
    let items: Items = {};
    for (const [index, each] of listings.entries()) {
      const complete = each !== 'incomplete';
      if (complete) items = each;
      finished.push((await this.poll({ at: 1000 * (index + 1), items, complete })).join());
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
      'if its only prompt was new and had an unknown status',
      [{}, { a: item('UNKNOWN') }, { a: item('UNKNOWN') }],
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

  it('with the time from when it was reopened to its last move', async () => {
    const project = new Project();
    await project.all(RUNNING, COMPLETED, COMPLETED, RUNNING, FAILED, COMPLETED, COMPLETED);
    const times = { startedAt: 4000, movedAt: 6000, endedAt: 6000, finishedAt: 7000 };
    expect(project.experiments.get('e')).toMatchObject(times);
  });

  it('not while a running prompt has its name', async () => {
    const project = new Project();
    await project.all(RUNNING, { ...COMPLETED, b: item('RUNNING', 'f') });
    await project.all(
      { ...COMPLETED, b: item('RUNNING', 'f') },
      { ...COMPLETED, b: item('RUNNING') },
    );
    expect(project.experiments.get('e')?.finishedAt).toBeUndefined();
  });

  it('also if the clock was set back', async () => {
    const project = new Project();
    const polls = [RUNNING, COMPLETED, COMPLETED].map((items, index) => {
      return { items, at: 9000 - index, complete: true };
    });
    const finished = [];
    for (const poll of polls) finished.push((await project.poll(poll)).join());
    expect(finished).toEqual(['', '', 'e']);
  });
});

it('an experiment counts its prompts when they go, come back, or get another name', async () => {
  const project = new Project();
  const running = () =>
    ['e', 'f'].map((name) => project.experiments.get(name)?.counts.RUNNING ?? 0);
  await project.all(RUNNING, {}, {});
  expect(running()).toEqual([0, 0]);
  await project.all(RUNNING);
  expect(running()).toEqual([1, 0]);
  await project.all({ a: item('RUNNING', 'f') });
  expect(running()).toEqual([0, 1]);
});
