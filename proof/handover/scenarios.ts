import type { Fleet, Shown, View } from './fleet.ts';

/** Minute of each disturbance. A poll of every project is due then. */
const MINUTE = 20;
const AT = MINUTE * 60;
const HOUR = 3600;
const LEASE = 10;
/** Seconds from a kill until others own the projects. */
const TAKEOVER = 13;
/** Seconds until others own the projects of a worker that stops. */
const HANDOVER = 2;

/** A disturbance of workers, and the alerts that it changes. */
export interface Scenario {
  readonly name: string;
  readonly fleet: Fleet;
  /** Minutes in which the changed alerts fire, by their label values; undefined if they do not fire. */
  readonly differs?: Readonly<Record<string, string | undefined>>;
}

type Shares = Readonly<Record<string, readonly string[]>>;

const SHARES = {
  a: ['stuck', 'failing', 'broken', 'rare'],
  b: ['stuck-late', 'failing-late', 'nearly-stuck', 'skipped'],
  c: ['well'],
} as const satisfies Shares;
const ALL = Object.values(SHARES).flat();

/** Returns the shares after the others have taken those of this worker. */
function without(gone: string, shares: Shares = SHARES): Shares {
  const others = Object.keys(shares).filter((name) => name !== gone);
  const free = shares[gone] ?? [];
  const part = (name: string) => free.filter((_, index) => others[index % others.length] === name);
  return {
    ...Object.fromEntries(others.map((name) => [name, [...(shares[name] ?? []), ...part(name)]])),
    [gone]: [],
  };
}

/** Returns workers that own these shares at a time; `show` can change what they show. */
function fleet(
  sharesAt: (at: number) => Shares,
  show: (at: number, name: string, shown: Shown) => View = (_at, _name, shown) => shown,
  seconds = HOUR,
): Fleet {
  const names = Object.keys(sharesAt(0));
  const configured = Object.values(sharesAt(0)).flat().length;
  const view = (name: string) => (at: number) =>
    show(at, name, { projects: sharesAt(at)[name] ?? [], configured });
  return {
    seconds,
    workers: {
      ...Object.fromEntries(names.map((name) => [name, view(name)])),
      // Independent of the workers.
      sqlite: () => ({ projects: ['elsewhere'], configured: 1, isAlone: true }),
    },
  };
}

/** Returns what a worker shows that has not reached the database since `since`. */
function cutOff(at: number, since: number, shown: Shown): Shown {
  const isHeld = at < since + LEASE;
  return {
    ...shown,
    projects: isHeld ? shown.projects : [],
    isConnected: false,
    leaseLostAt: since + LEASE,
  };
}

/** Nothing happens. */
export const undisturbed = fleet(() => SHARES);

/** Worker a is killed, and the others take its projects. */
function kill(after: number): Scenario {
  const from = AT + after;
  return {
    name: `kill ${after} s after a scrape`,
    fleet: fleet(
      (at) => (at < from + TAKEOVER ? SHARES : without('a')),
      (at, name, shown) => (name === 'a' && at >= from ? 'down' : shown),
    ),
    differs: { 'EvalwatchDown a': '25.25 to end' },
  };
}

/** Worker a gives back its projects, and comes back at the same address or is no target any more. */
function stop(after: number, comesBack: boolean): Scenario {
  const from = AT + after;
  const back = from + 40;
  return {
    name: `stop ${after} s after a scrape${comesBack ? ', and start' : ''}`,
    fleet: fleet(
      (at) =>
        at < from + HANDOVER || (comesBack && at >= back + HANDOVER) ? SHARES : without('a'),
      (at, name, shown) => {
        if (name !== 'a' || at < from) return shown;
        if (at < from + HANDOVER) return { ...shown, projects: [] };
        if (comesBack) return at < back ? 'down' : shown;
        return 'gone';
      },
    ),
  };
}

/** Every project goes to another worker at once: one shows too many while another shows too few. */
function exchange(after: number, by: 1 | 2): Scenario {
  const names = Object.keys(SHARES);
  const shares = Object.values(SHARES);
  const exchanged = Object.fromEntries(
    names.map((name, index) => [name, shares[(index + by) % 3] ?? []]),
  );
  return {
    name: `exchange by ${by}, ${after} s after a scrape`,
    fleet: fleet((at) => (at < AT + after ? SHARES : exchanged)),
  };
}

/** New workers replace all three, one after the other. The old ones may be of a version that exports every project. */
function replaceAll(every: number, isUpgrade: boolean): Scenario {
  const names = ['a', 'b', 'c', 'new-a', 'new-b', 'new-c'];
  const isThere = (index: number, at: number) => {
    const turn = AT + (index % 3) * every;
    return index < 3 ? at < turn : at >= turn - 10;
  };
  /** The present workers share all projects. */
  const owned = (index: number, at: number) => {
    const there = names.flatMap((_, one) => (isThere(one, at) ? [one] : []));
    return ALL.filter((_, n) => there[n % there.length] === index);
  };
  const view = (index: number) => (at: number) => {
    if (!isThere(index, at)) return 'gone';
    const own = owned(index, Math.max(0, at - HANDOVER));
    return isUpgrade && index < 3
      ? { projects: ALL, owned: own, configured: undefined }
      : { projects: own, configured: ALL.length };
  };
  return {
    name: `${isUpgrade ? 'upgrade' : 'rolling restart'}, one worker every ${every} s`,
    fleet: {
      seconds: HOUR,
      workers: Object.fromEntries(names.map((name, index) => [name, view(index)])),
    },
  };
}

/** Worker b does not reach the database any more; the others take its projects. */
const partition: Scenario = {
  name: 'a worker without the database',
  fleet: fleet(
    (at) => (at < AT + TAKEOVER ? SHARES : without('b')),
    (at, name, shown) => (name === 'b' && at >= AT ? cutOff(at, AT, shown) : shown),
  ),
  differs: { 'EvalwatchWorkerLeaseLost b': '21.75 to end' },
};

/** Scrapes of worker a, or of all, are lost. */
function lostScrapes(count: number, ofAll: boolean): Scenario {
  return {
    name: `${count} lost scrapes of ${ofAll ? 'all workers' : 'a worker'}`,
    fleet: fleet(
      () => SHARES,
      (at, name, shown) =>
        (ofAll || name === 'a') && at >= AT && at < AT + count * 15 ? 'down' : shown,
    ),
  };
}

/** The database is away for some minutes. Worker c also owns the projects with troubles of one owner. */
function outage(minutes: number, differs: Scenario['differs'] = {}): Scenario {
  const shares = { ...SHARES, c: [...SHARES.c, 'stalled', 'odd'] };
  const end = AT + minutes * 60;
  return {
    name: `${minutes} minutes without the database`,
    fleet: fleet(
      () => shares,
      (at, _name, shown) => (at >= AT && at < end ? cutOff(at, AT, shown) : shown),
      end + 40 * 60,
    ),
    differs: {
      // The overdue poll does not take place meanwhile.
      'EvalwatchSchedulerStalled stalled search': `16.25 to ${MINUTE + minutes + 0.25}`,
      // The first poll of the new owner counts the anomalies.
      'EvalwatchUnexpectedItems odd search': `${MINUTE + minutes + 0.25} to end`,
      // These do not begin without the database, and then wait for ten minutes.
      'EvalwatchPromptStuck stuck-late RUNNING search': `${MINUTE + minutes + 10.25} to end`,
      'EvalwatchPromptStuck nearly-stuck RUNNING search': `${MINUTE + minutes + 10.25} to end`,
      EvalwatchProjectsUnowned: `22.25 to ${MINUTE + minutes + 0.25}`,
      'EvalwatchWorkerLeaseLost a': `21.75 to ${MINUTE + minutes}`,
      'EvalwatchWorkerLeaseLost b': `21.75 to ${MINUTE + minutes + 0.25}`,
      'EvalwatchWorkerLeaseLost c': `21.75 to ${MINUTE + minutes + 0.25}`,
      ...differs,
    },
  };
}

/** Firing for a project whose new owner is scraped after the first evaluation. */
const STALE = '30.75 to 140.25';

/** Nobody takes the projects of a killed worker. */
const orphans: Scenario = {
  name: 'a kill, and nobody takes the projects for 6 hours',
  fleet: fleet(
    () => SHARES,
    (at, name, shown) => (name === 'a' && at >= AT ? 'down' : shown),
    6 * HOUR,
  ),
  differs: {
    'EvalwatchDown a': '25 to end',
    EvalwatchProjectsUnowned: '22 to end',
    'EvalwatchDataStale stuck search': '30.75 to end',
    'EvalwatchDataStale broken search': '30.75 to end',
    'EvalwatchDataStale rare search': '269.75 to end',
    'EvalwatchPromptsMissing broken search': '16 to 76',
  },
};

/** A project is removed. With `shortage`, c is gone a minute before, and its project has no owner for that many seconds. */
function removal(project: string, shortage: number): Scenario {
  const left = ALL.length - 1;
  return {
    name: `a project is removed, ${shortage === 0 ? 'while all are owned' : 'while one has no owner'}`,
    fleet: fleet(
      (at) => (shortage > 0 && at >= AT - 60 + shortage ? without('c') : SHARES),
      (at, name, shown) => {
        if (name === 'c' && shortage > 0 && at >= AT - 60) return 'gone';
        if (at < AT) return shown;
        return {
          configured: left,
          projects: shown.projects.filter((one) => one !== project),
        };
      },
    ),
    differs: {
      // The alert is kept until every worker was scraped, and every other project has an owner.
      [`EvalwatchPromptStuck ${project} RUNNING search`]: `10 to ${MINUTE + (shortage === 0 ? 0.25 : shortage / 60 - 1)}`,
      ...(shortage > 0 && { EvalwatchProjectsUnowned: '21.25 to 24' }),
    },
  };
}

export const SCENARIOS: readonly Scenario[] = [
  ...[1, 6, 11].map((after) => kill(after)),
  stop(1, false),
  stop(6, true),
  stop(11, true),
  exchange(1, 1),
  exchange(6, 2),
  exchange(11, 1),
  replaceAll(20, false),
  replaceAll(60, false),
  replaceAll(30, true),
  partition,
  lostScrapes(1, false),
  lostScrapes(4, false),
  lostScrapes(4, true),
  outage(10),
  outage(120, {
    'EvalwatchPromptsMissing broken search': '16 to 76',
    'EvalwatchDataStale broken search': '30.75 to 140',
    'EvalwatchDataStale nearly-stuck search': STALE,
    'EvalwatchDataStale odd search': STALE,
    'EvalwatchDataStale skipped search': STALE,
    'EvalwatchDataStale stalled search': STALE,
    'EvalwatchDataStale stuck search': '30.75 to 140',
    'EvalwatchDataStale stuck-late search': STALE,
    'EvalwatchDataStale well search': STALE,
  }),
  removal('stuck', 0),
  removal('stuck', 300),
  orphans,
];

/** All exchange their projects, then a is killed, then b loses the database. */
const KILLED_AT = AT + 60;
const CUT_AT = AT + 120;
const SHORT_END = AT + 300;

export const SHORT_REFERENCE: Fleet = { ...undisturbed, seconds: SHORT_END };
export const SHORT: Scenario = {
  name: 'an exchange, a kill and a worker without the database',
  fleet: fleet(
    (at) => {
      const { a, b, c } = SHARES;
      // After the scrape of b and before that of c: b's projects are shown twice when those of a are not shown.
      if (at < AT + 6) return SHARES;
      if (at < KILLED_AT + TAKEOVER) return { a: c, b: a, c: b };
      return at < CUT_AT + TAKEOVER ? { a: [], b: a, c: [...b, ...c] } : { a: [], b: [], c: ALL };
    },
    (at, name, shown) => {
      if (name === 'a' && at >= KILLED_AT) return 'down';
      return name === 'b' && at >= CUT_AT ? cutOff(at, CUT_AT, shown) : shown;
    },
    SHORT_END,
  ),
  differs: { 'EvalwatchWorkerLeaseLost b': '23.75 to end' },
};
