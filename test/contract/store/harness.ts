import { afterEach, beforeEach } from 'vitest';
import type { KnownRecord } from '../../../src/domain/record.ts';
import { KINDS, type Kind, type Status } from '../../../src/domain/status.ts';
import { ExperimentChanges } from '../../../src/domain/experiment.ts';
import { SummaryChange } from '../../../src/domain/summary.ts';
import type { Changes, Transition } from '../../../src/domain/transition.ts';
import type { Observer } from '../../../src/monitor/events.ts';
import type {
  CommittedTransition,
  ListingSnapshot,
  PendingFailureQuery,
  PollHealth,
  KnownProject,
  Store,
  StoreReader,
} from '../../../src/monitor/ports/store.ts';
import type { NotifyStore } from '../../../src/notify/ports.ts';
import { pollItems } from '../../support/experiments.ts';
import { eventLog } from '../../support/monitor.ts';

interface WholeStore extends Store {
  readonly notifications: NotifyStore;
}

/** A new and empty store of one engine. */
interface StoreUnderTest extends AsyncDisposable {
  readonly store: WholeStore;
  reopen(): Promise<WholeStore>;
  openReader(): Promise<StoreReader>;
}

export type OpenStore = (emit: Observer) => Promise<StoreUnderTest>;

export const UP: PollHealth = {
  up: true,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: 900,
  lastSuccessAt: 900,
};

export const UNTRIED = {
  count: 0,
  useless: 0,
  firstAt: undefined,
  lastAt: undefined,
  nextAt: 0,
};

/** Texts that a careless engine mangles. */
export const HARD_TEXTS = [
  '__proto__',
  'constructor',
  "'; DROP TABLE project; --",
  '%_*?[]',
  '\u0001',
  '\u0001\u0001',
  'a\u0001\u0002',
  ' spaces ',
  'Ä\u0308\u{1F600}\u202E',
  'null',
  '1e3',
  'x'.repeat(512),
];

export type Harness = ReturnType<typeof createHarness>;

/** Creates a store for each test, with shortcuts for what a monitor does with it. */
export function createHarness(open: OpenStore) {
  const log = eventLog();
  let opened: StoreUnderTest;
  let store: WholeStore;

  beforeEach(async () => {
    log.clear();
    opened = await open(log.emit);
    ({ store } = opened);
  });
  afterEach(() => opened[Symbol.asyncDispose]());

  async function commit(
    project: string,
    changes: Partial<Record<Kind, Changes>>,
    { at = 1000, from = undefined as KnownProject | undefined } = {},
  ): Promise<readonly CommittedTransition[] | undefined> {
    const listings = new Map(
      KINDS.flatMap((kind) => (changes[kind] ? [[kind, changes[kind]] as const] : [])),
    );
    const { token } =
      from ?? (listings.size === 0 ? { token: '' } : await store.loadKnown(project, []));
    const committed = await store.commitPoll({ project, at, health: UP, token, listings });
    return committed?.transitions;
  }

  /** Polls `project`, which shows these statuses by id. A record is gone after two listings without it. */
  async function see(
    project: string,
    statuses: Readonly<Record<string, string>>,
    at: number,
    kind: Kind = 'prompt',
  ): Promise<readonly CommittedTransition[] | undefined> {
    return (await pollItems(store, project, statuses, at, { kind, health: UP }))?.transitions;
  }

  /** Lets each of these prompts fail once. Returns the transition ids. */
  async function fail(
    project: string,
    ids: readonly string[],
    at = 1000,
  ): Promise<readonly number[]> {
    const all = (status: string) => Object.fromEntries(ids.map((id) => [id, status]));
    await see(project, all('RUNNING'), at);
    const transitions = await see(project, all('FAILED'), at);
    return (transitions ?? []).map(({ transitionId }) => transitionId);
  }

  async function listing(
    project: string,
    kind: Kind = 'prompt',
    reader: StoreReader = store,
  ): Promise<ListingSnapshot> {
    const { projects } = await reader.snapshot();
    const found = projects.find((one) => one.project === project)?.listings.get(kind);
    if (found === undefined) throw new Error(`no ${kind} listing of ${project}`);
    return found;
  }

  return {
    log,
    get store() {
      return store;
    },
    reopen: async () => {
      store = await opened.reopen();
    },
    openReader: () => opened.openReader(),
    commit,
    see,
    fail,
    listing,
    known: async (project: string, kind: Kind = 'prompt') =>
      (await store.loadKnown(project, [kind])).listings.get(kind),
    pendingIds: async (query: Partial<PendingFailureQuery> = {}) => {
      const pending = await store.pendingFailures({ limitPerProject: 100, ...query });
      return pending.map(({ promptId }) => promptId);
    },
  };
}

export function recordOf(id: string, status: Status, more: Partial<KnownRecord> = {}): KnownRecord {
  return {
    id,
    status,
    statusRaw: undefined,
    name: `name of ${id}`,
    timestamp: '2031-05-06T07:08:09Z',
    since: 100,
    missing: 0,
    gone: false,
    ...more,
  };
}

export function moveOf(id: string, to: Status): Transition {
  return { id, name: undefined, from: 'RUNNING', to, heldMs: 1 };
}

/** Makes changes of records that are new, except those that are known. */
export function changesOf(some: Partial<Changes>, known: readonly KnownRecord[] = []): Changes {
  const summary = new SummaryChange();
  const experiments = new ExperimentChanges();
  for (const record of some.records ?? []) {
    const before = known.find(({ id }) => id === record.id);
    summary.addRecord(before, record);
    experiments.addRecord(before, record);
  }
  for (const { from, to } of some.transitions ?? []) summary.addTransition(from, to);
  const found = { baseline: false, records: [], transitions: [], gone: [], complete: true };
  return { ...found, summary, experiments, ...some };
}
