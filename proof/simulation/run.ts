import { createService } from '../../src/simulator/service.ts';
import { createKeyRing } from '../../src/simulator/world/key-ring.ts';
import { World } from '../../src/simulator/world/world.ts';
import { randomNumbers } from '../random.ts';
import type { Access, StoreWeather } from './backend.ts';
import { ALL_PROJECTS, configOf, JITTER_MS, MAX_REQUESTS_PER_SECOND } from './configuration.ts';
import { createKernel, type Kernel } from './kernel.ts';
import { createMachine, type Machine, START } from './machine.ts';
import { CALM, createNetwork, FAIR, type Network, type Weather } from './network.ts';
import { createOracle, KEY } from './oracle.ts';
import { loadSources, type Process, startProcess } from './process.ts';
import { openServer } from './open-server.ts';
import { createPostgresBackend } from './postgres.ts';
import type { FaultKind, Scenario } from './scenario.ts';
import { createSqliteBackend } from './sqlite.ts';
import { createRollouts, type Reloading } from './rollouts.ts';
import { createSetbacks } from './setbacks.ts';
import { ADDRESSES, createTwins } from './twins.ts';
import { createWatch } from './watch.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Time without faults at the end, in which everything that is pending has to end. */
const CALM_MS = 45 * MINUTE;
/** Time within which a poll that is due has to begin. */
const PATIENCE_MS = 90 * SECOND;
/** The same with a database: a statement that was held up is given up after 30 s, and what became of it is asked until an answer comes. */
const PATIENCE_WITH_DATABASE_MS = 130 * SECOND;
/** Time after which others find that a lease has ended: a lease, and a beat and a bit. */
const NOTICED_AFTER_LEASES = 4 / 3;
/** Lengths of leases, with the share of the runs that have each, ms. Short ones end often, long ones take few beats. */
const LEASES_MS = [
  ...Array.from({ length: 8 }, () => 60 * SECOND),
  ...Array.from({ length: 4 }, () => 30 * SECOND),
  ...Array.from({ length: 3 }, () => 15 * SECOND),
  5 * SECOND,
];
const MAX_STOP_MS = 60 * SECOND;
/** Time that no lease can have left. */
const OLD_LEASE_MS = 10 * MINUTE;
/** Share of a lease for which another worker may not have read its renewal: two beats, and a bit. */
const UNREAD = 0.8;
/** Less than any statement takes to its server, ms. */
const BEFORE_ARRIVAL_MS = 0.05;
const USUAL_DISK: StoreWeather = { fails: 0.001, slow: 0.003 };
const USUAL_DATABASE: StoreWeather = { fails: 0.002, slow: 0.003 };
const CALM_STORE: StoreWeather = { fails: 0, slow: 0 };
/** How probable it is that a process dies after a write or an event, with one project. */
const SUDDEN_DEATH = 0.03;
/** How probable it is that a process is paused while a request of it is on its way, with one project. */
const SUDDEN_PAUSE = 0.02;
/** The same while it requests the details of a failure, which it must not tell after its lease. */
const SUDDEN_PAUSE_AT_DETAIL = 0.05;
/** The same just before the end of their answer: the pause may outlast the lease, and then the answer counts. */
const SUDDEN_PAUSE_AT_END = 0.05;
/** How probable it is that a process dies while the postponement of a failure is held up. */
const DEATH_AT_POSTPONEMENT = 0.5;
/** How probable it is that a process is stopped soon after such a request, or after a request for places that failed. */
const STOP_AT_DETAIL = 0.02;
const STOP_AT_PLACES = 0.05;
/** How probable it is that the clock of the database is set back while the lease of a dead worker ends. */
const CLOCK_SET_AT_DEATH = 0.1;
/** How probable it is that a listing has an undocumented item. */
const ODD_LISTING = 0.1;
/** Time for which a project must have been missing from a configuration so that nothing that was sent before arrives, ms. */
const FORGOTTEN_MS = 2 * MINUTE;
/** Events between which and the next step a process may die. */
const SHORT_LIVED: ReadonlySet<string> = new Set([
  'record.transition',
  'prompt.failed',
  'poll.finished',
]);

export interface RunOptions {
  readonly source: string;
  readonly scenario: Scenario;
  /** For three workers: of an empty PostgreSQL database, or `model`; undefined for one daemon with SQLite. */
  readonly database?: string | undefined;
}

export interface Outcome {
  readonly faults: readonly string[];
  /** Hash of the whole trace. */
  readonly digest: string;
  readonly trace: readonly string[];
  readonly days: number;
  readonly acts: Readonly<Record<string, number>>;
  readonly listings: number;
  readonly moves: number;
  readonly failures: number;
}

/** The start of a poll. */
interface Start {
  /** Virtual time. */
  readonly at: number;
  /** By the clock of its process. */
  readonly wall: number;
  /** The same of the start before. */
  readonly before: number;
  /** The latest of all. */
  readonly latest: number;
}

const NEVER: Start = { at: -Infinity, wall: -Infinity, before: -Infinity, latest: -Infinity };

/** A machine on which one process runs at a time. */
interface Host {
  readonly name: string;
  /** How far its wall clock is off, ms. */
  wallOffset: number;
  life: Life | undefined;
}

/** A process that runs, starts or stops. */
interface Life extends Reloading {
  readonly host: Host;
  readonly machine: Machine;
  readonly network: Network;
  readonly access: Access;
  stop?: Process['stop'];
  reload?: Process['reload'];
  /** Since when it runs without a disturbance; undefined while it starts or stops. */
  steadySince: number | undefined;
  /** When it was last paused. */
  pausedAt: number;
  /** When its clock was set back, and by how much, ms. */
  readonly setBacks: { readonly at: number; readonly ms: number }[];
}

interface Standby {
  /** Projects of which it lacks commits. */
  readonly behind: Set<string>;
  /** Whether it takes over while a commit of one of them is on its way. */
  readonly meetsCommit: boolean;
  readonly takeOver: () => void;
}

/** Simulates one daemon with SQLite, or several workers with PostgreSQL. The seed decides everything. */
export async function simulate(options: RunOptions): Promise<Outcome> {
  const { source, scenario, database } = options;
  const { seed, kinds } = scenario;
  const durationMs = scenario.hours * HOUR;
  const projects = ALL_PROJECTS.slice(0, scenario.projects);
  const random = randomNumbers(seed);
  // A generator of its own, so that a run without one kind of faults has the others at the same times.
  const pick = randomNumbers(~seed);
  const kernel = createKernel(random);
  const sources = await loadSources(source);
  const hosts: readonly Host[] = (database === undefined ? ['daemon'] : ['a', 'b', 'c']).map(
    (name) => ({ name, wallOffset: 0, life: undefined }),
  );
  const isShared = hosts.length > 1;
  const leaseMs = LEASES_MS[Math.floor(pick() * LEASES_MS.length)] ?? 0;
  const world = new World({
    now: () => START + kernel.now(),
    seed,
    projects: projects.map(({ id }) => id),
    promptsPerProject: 8,
    datasetsPerProject: 1,
    rates: { start: 0.2, finish: 0.15, fail: 0.4, arrivals: 0.1, comeBack: 0.3 },
  });
  const serve = createTwins(createService({ world, keys: createKeyRing(KEY), etag: 'none' }), () =>
    kernel.chance(ODD_LISTING),
  );
  const oracle = createOracle(world, { isShared });
  const faults: string[] = [];
  const acts: Record<string, number> = {};
  const lastStarts = new Map<string, Start>();
  const rate = isShared ? watchSharedRate(kernel) : undefined;
  const patienceMs = isShared
    ? PATIENCE_WITH_DATABASE_MS + NOTICED_AFTER_LEASES * leaseMs
    : PATIENCE_MS;
  const setbacks = createSetbacks({ kernel, projects, patienceMs, fault });
  const has = (kind: FaultKind) => kinds.includes(kind);
  const usualWeather = has('bad network') ? FAIR : CALM;
  const usualStore = !has('bad store') ? CALM_STORE : isShared ? USUAL_DATABASE : USUAL_DISK;
  let weather: Weather = usualWeather;
  let storeWeather: StoreWeather = usualStore;
  let isCalm = false;
  let lives = 0;
  let reloadedAt = -Infinity;
  /** When the last fault that can delay polls began or ended. */
  let disturbedAt = 0;
  /** What is put off until later. */
  const put = new Set<() => void>();

  /** The standby that takes over next. */
  let standby: Standby | undefined;
  /** Whether a standby takes over once a worker has claimed projects, of which the standby knows nothing. */
  let isAboutToFail = false;
  /** Whether the database goes away once a commit is on its way. */
  let isAboutToBreak = false;
  /** How far the clock of the database is off, ms. */
  let databaseClockOffset = 0;
  /** When it was last set back. */
  let databaseClockSetAt = -Infinity;
  /** When a worker last ended or was paused. */
  let diedAt = -Infinity;
  /**
   * Until when a lease can hold that is from before the clock of the database was set back: nobody had read it before its
   * worker died, or a standby brings it back.
   */
  let oldLeasesUntil = -Infinity;
  const watch = createWatch({
    kernel,
    leaseMs: isShared ? leaseMs : undefined,
    periodMs: (project) => projects.find(({ id }) => id === project)?.periodMs ?? 0,
    fault,
  });
  const common = { kernel, source, weather: () => (isCalm ? CALM_STORE : storeWeather) };
  await using backend =
    database === undefined
      ? await createSqliteBackend(common)
      : await createPostgresBackend({
          ...common,
          server: await openServer(source, database, fault),
          leaseMs,
          fault,
          clockOffset: () => databaseClockOffset,
        });
  const rollouts = createRollouts({
    kernel,
    pick: randomNumbers(seed ^ 0x5a5a5a5a),
    whole: configOf(isShared, projects),
    addresses: ADDRESSES,
    processes: () => hosts.flatMap(({ life }) => life ?? []),
    isRunning: (life) => {
      const own = hosts.find((host) => host.life === life)?.life;
      return own?.steadySince !== undefined && !own.machine.isPaused();
    },
    stored: () =>
      kernel.real(async () => {
        const reader = await backend.openReader();
        const { projects: stored } = await reader.snapshot();
        await reader.close();
        return stored.map(({ project }) => project);
      }),
    onReload: (life, state) => {
      const own = hosts.find((host) => host.life === life)?.life;
      if (own?.steadySince !== undefined) own.steadySince = kernel.now();
      if (own !== undefined) watch.reloaded(own.machine.name);
      if (state === 'begins') {
        act('reload');
        reloadedAt = kernel.now();
      } else disturbedAt = kernel.now();
    },
    fault,
    onError: bug,
  });

  function fault(text: string): void {
    kernel.note(`FAULT ${text}`);
    faults.push(text);
    kernel.stop();
  }

  function bug(error: unknown): void {
    fault(`a bug: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }

  function act(name: string): void {
    acts[name] = (acts[name] ?? 0) + 1;
    disturbedAt = kernel.now();
    kernel.note(`ACT ${name}`);
  }

  /** Does this later, or when the calm begins. */
  function later(ms: number, work: () => void): void {
    let isDone = false;
    const once = () => {
      if (!isDone) work();
      isDone = true;
      put.delete(once);
    };
    put.add(once);
    kernel.after(ms, once);
  }

  async function compare(isOver: boolean, stopped?: string): Promise<void> {
    await kernel.real(async () => {
      const reader = await backend.openReader();
      try {
        for (const difference of await oracle.compare(reader, isOver, stopped)) fault(difference);
      } finally {
        await reader.close();
      }
    });
  }

  /** Records that a request goes out, by the clock of its process. */
  function watchRate(machine: Machine): (address: string) => void {
    const sentTo = new Map<string, number[]>();
    return (address) => {
      const tooMany = rate?.();
      if (tooMany !== undefined) fault(`${tooMany} requests of all workers in 10 s`);
      if (isShared) return;
      // A changed service begins with a limit of its own.
      const sent = sentTo.get(address) ?? [];
      sentTo.set(address, sent);
      const at = machine.clock.monotonic();
      sent.push(at);
      while ((sent[0] ?? at) <= at - SECOND) sent.shift();
      // Polls from before a reload keep their limit, and the service before the last one may be back.
      const services = kernel.now() < reloadedAt + MINUTE ? 2 : 1;
      if (sent.length > services * MAX_REQUESTS_PER_SECOND) {
        fault(`${sent.length} requests in a second`);
      }
    };
  }

  async function begin(host: Host): Promise<void> {
    lives += 1;
    disturbedAt = kernel.now();
    const name = `${host.name}-${lives}`;
    const drift = 1 + kernel.between(-0.0002, 0.0002);
    const machine = createMachine(kernel, name, { wallOffset: host.wallOffset, drift });
    const countRequest = watchRate(machine);
    const network = createNetwork({
      kernel,
      machine,
      answer: serve,
      weather: () => (isCalm ? CALM : weather),
      onSent: (address, isDetail) => {
        countRequest(address);
        const probability = isDetail ? SUDDEN_PAUSE_AT_DETAIL : SUDDEN_PAUSE / projects.length;
        pauseSometimes(own, probability, isDetail);
        if (isDetail) stopSometimes(own, STOP_AT_DETAIL);
        rollouts.sent(own);
      },
      onEnding: (isDetail) => {
        if (isDetail) pauseSometimes(own, SUDDEN_PAUSE_AT_END, isDetail);
      },
      onListing: (listing) => oracle.read(name, listing),
    });
    const access = await kernel.real(() =>
      backend.access({
        machine,
        onWritten: () => dieSometimes(own),
        onCommitting: (project) => {
          if (isAboutToBreak)
            kernel.after(kernel.between(BEFORE_ARRIVAL_MS, 4), () => breakOff(own));
          isAboutToBreak = false;
          if (standby?.meetsCommit === true && standby.behind.has(project)) {
            kernel.after(BEFORE_ARRIVAL_MS, standby.takeOver);
          }
        },
        onCommitted: (project) => {
          standby?.behind.add(project);
          oracle.committed(name, project);
        },
        onClaiming: () => {
          const takeOver = isAboutToFail ? prepareFailover() : undefined;
          return (claimed) => {
            watch.claimed(name, claimed);
            if (takeOver === undefined || claimed.length === 0) return;
            isAboutToFail = false;
            kernel.after(kernel.between(5, 50), takeOver);
            slowService();
          };
        },
        onFailureClaimed: (project) => {
          const isConfigured = own.config.projects.some(({ id }) => id === project);
          if (isConfigured || own.isReloading || kernel.now() < own.configuredAt + FORGOTTEN_MS)
            return;
          fault(`${name}, which has not configured ${project}, takes a failure of it`);
        },
        onPostponementHeldUp: () => dieSometimes(own, DEATH_AT_POSTPONEMENT),
        onTrouble: () => watch.troubled(name),
        onUnanswered: () => watch.unanswered(name),
        onRenewed: () => watch.renewed(name),
        onLeft: () => watch.left(name),
        onGrantFailed: () => stopSometimes(own, STOP_AT_PLACES),
      }),
    );
    const config = rollouts.atStart(host.name);
    const own: Life = {
      host,
      machine,
      network,
      access,
      config,
      configuredAt: kernel.now(),
      isReloading: false,
      steadySince: undefined,
      pausedAt: -Infinity,
      setBacks: [],
    };
    host.life = own;
    kernel.note(`${name} starts`);
    try {
      const process = await startProcess({
        kernel,
        machine,
        sources,
        config,
        outside: {
          openStore: access.open,
          service: { dispatcher: network.dispatcher, random },
        },
        onEvent: (event) => {
          if (event.type === 'scheduler.started_poll') {
            kernel.note(`${name} polls ${event.project}`);
            setbacks.ticked(event.project);
            const wall = machine.clock.now();
            const { wall: before, latest } = lastStarts.get(event.project) ?? NEVER;
            const start = { at: kernel.now(), wall, before, latest: Math.max(latest, wall) };
            lastStarts.set(event.project, start);
          }
          if (event.type === 'poll.finished') setbacks.ended(event.project);
          if (event.type === 'scheduler.overlapped') {
            setbacks.ticked(event.project);
            // A run that comes due while a poll runs counts as started.
            const last = lastStarts.get(event.project) ?? NEVER;
            lastStarts.set(event.project, { ...last, wall: machine.clock.now() });
          }
          oracle.observe(name, event);
          watch.observe(machine, event);
          if (SHORT_LIVED.has(event.type)) dieSometimes(own);
        },
        onError: bug,
      });
      own.stop = process.stop;
      own.reload = process.reload;
      rollouts.started(own);
      own.steadySince = kernel.now();
      disturbedAt = kernel.now();
    } catch (error) {
      // The supervisor starts it again.
      if (!(error instanceof Error && error.name === 'StoreError')) throw error;
      kernel.note(`${name} did not start: ${error.message}`);
      machine.kill();
      access.kill();
      host.life = undefined;
      later(5 * SECOND, () => void begin(host).catch(bug));
    }
  }

  /** Ends the process without warning, compares, and starts another one. */
  async function kill(own: Life): Promise<void> {
    act('kill');
    died();
    watch.troubled(own.machine.name);
    own.machine.kill();
    own.access.kill();
    own.host.life = undefined;
    if (isShared && has('clock set') && kernel.chance(CLOCK_SET_AT_DEATH)) {
      kernel.after(kernel.between(UNREAD * leaseMs, leaseMs), () => setDatabaseClockBack());
    }
    await compare(false);
    later(pauseBefore(), () => void begin(own.host).catch(bug));
  }

  /** Kills the process at once, before anything else happens: between a commit and its answer, or after an event. */
  function dieSometimes(
    own: Life,
    probability = SUDDEN_DEATH / projects.length / (isShared ? 2 : 1),
  ): void {
    if (isCalm || !has('kill') || !kernel.chance(probability)) return;
    kernel.after(0, () => {
      if (own.machine.isAlive() && !own.machine.isPaused()) void kill(own).catch(bug);
    });
  }

  function pauseBefore(): number {
    return kernel.chance(0.2) ? kernel.between(MINUTE, 90 * MINUTE) : kernel.between(10, 5000);
  }

  async function stop(own: Life, end?: 'not the last' | 'last'): Promise<void> {
    act('stop');
    died();
    own.steadySince = undefined;
    const startedAt = kernel.now();
    const isStuck = kernel.after(MAX_STOP_MS, () => {
      if (own.machine.isAlive() && own.pausedAt < startedAt) fault('a stop did not end');
    });
    await own.stop?.();
    isStuck();
    if (!own.machine.isAlive()) return;
    if (own.machine.timers() > 0) fault(`${own.machine.timers()} timers are left after a stop`);
    if (own.network.requests() > 0) fault('requests are left after a stop');
    own.machine.kill();
    own.host.life = undefined;
    const { name } = own.machine;
    await compare(end === 'last', watch.hasTroubleSince(name, startedAt) ? undefined : name);
    if (end === undefined) {
      later(isCalm ? 10 : pauseBefore(), () => void begin(own.host).catch(bug));
    }
  }

  function pause(own: Life, clockSet = 0.3): void {
    act('pause');
    died();
    own.pausedAt = kernel.now();
    own.machine.pause();
    own.steadySince &&= Infinity;
    const isClockSet = has('clock set') && kernel.chance(clockSet);
    watch.troubled(own.machine.name);
    later(kernel.between(SECOND, kernel.chance(0.2) ? HOUR : 30 * SECOND), () => {
      if (isClockSet && own.machine.isAlive()) setClock(own);
      own.machine.resume();
      // Polls from before a reload have waited, too.
      if (own.pausedAt < reloadedAt + MINUTE) reloadedAt += kernel.now() - own.pausedAt;
      watch.troubled(own.machine.name);
      own.steadySince &&= kernel.now();
      disturbedAt = kernel.now();
    });
  }

  /** Pauses the process before the answer to its request comes. */
  function pauseSometimes(own: Life, probability: number, isDetail: boolean): void {
    if (isCalm || !has('pause') || !kernel.chance(probability)) return;
    kernel.after(0, () => {
      if (own.machine.isAlive() && !own.machine.isPaused()) pause(own, isDetail ? 0.6 : 0.3);
    });
  }

  function setClock(own: Life): void {
    act('clock set');
    const isBeforeRun = !isShared && kernel.chance(0.5);
    const most = kernel.chance(0.5) ? 3 * HOUR : 2 * MINUTE;
    const ms = isBeforeRun ? setbacks.step(own.machine) : kernel.between(-1, 1) * most;
    kernel.note(`${own.machine.name} set its clock by ${Math.round(ms)} ms`);
    if (ms < 0) own.setBacks.push({ at: kernel.now(), ms: -ms });
    own.host.wallOffset += ms;
    own.machine.jump(ms);
    watch.clockSet(own.machine.name, ms);
    own.steadySince &&= kernel.now();
    const since = own.steadySince;
    if (isShared || since === undefined) return;
    setbacks.happened(own.machine, ms, (project) => {
      const isSame = own.host.life === own && own.steadySince === since;
      return isSame && rollouts.isWatched(project) && storeWeather === usualStore;
    });
  }

  function worsenNetwork(): void {
    act('bad network');
    const bad = () => kernel.between(0, 0.4);
    weather = kernel.chance(0.3)
      ? { ...CALM, error: 1 }
      : { ...FAIR, refused: bad(), lost: bad(), cut: bad(), garbled: bad() };
    kernel.after(kernel.between(MINUTE, 20 * MINUTE), () => {
      weather = usualWeather;
    });
  }

  function died(): void {
    diedAt = kernel.now();
    keepOldLeases();
  }

  function keepOldLeases(): void {
    if (Math.abs(databaseClockSetAt - diedAt) > UNREAD * leaseMs) return;
    oldLeasesUntil = databaseClockSetAt + OLD_LEASE_MS;
  }

  /** Leases of the dead would hold again, and places for requests lie in the future. */
  function setDatabaseClockBack(): void {
    if (isCalm) return;
    act('database clock set back');
    databaseClockSetAt = kernel.now();
    keepOldLeases();
    databaseClockOffset -= kernel.random() * (kernel.chance(0.5) ? 3 * HOUR : 10 * MINUTE);
  }

  /** Polls take longer than it takes others to claim a project. */
  function slowService(): void {
    const before = weather;
    const slow = { ...before, slow: 0.6 };
    weather = slow;
    kernel.after(10 * SECOND, () => {
      if (weather === slow) weather = before;
    });
  }

  /** Returns the function by which a standby that has everything until now takes the place of the database. */
  function prepareFailover(): (() => void) | undefined {
    const promote = backend.makeStandby?.();
    if (promote === undefined) return undefined;
    const restore = oracle.save();
    const preparedAt = kernel.now();
    return () => {
      // What an earlier standby had is lost by this one.
      standby = undefined;
      act('failover');
      if (databaseClockSetAt > preparedAt) oldLeasesUntil = kernel.now() + OLD_LEASE_MS;
      watch.failedOver();
      // Virtual time stands still meanwhile.
      void kernel
        .real(async () => {
          const reader = await backend.openReader();
          const before = await reader.transitions({});
          promote();
          await restore(reader, before);
          await reader.close();
        })
        .catch(bug);
    };
  }

  /** A standby takes the place of the database, without the last commits, or the last claim. */
  function failOver(): void {
    if (standby !== undefined || isAboutToFail || backend.makeStandby === undefined) return;
    if (kernel.chance(0.3)) {
      isAboutToFail = true;
      return;
    }
    const promote = prepareFailover();
    const takeOver = () => {
      if (standby?.takeOver === takeOver) promote?.();
    };
    const meetsCommit = kernel.chance(0.5);
    standby = { behind: new Set(), meetsCommit, takeOver };
    const most = kernel.chance(0.3) ? 30_000 : 3000;
    later(meetsCommit ? 3 * MINUTE : kernel.between(10, most), takeOver);
  }

  /** Stops the process while it waits for something. */
  function stopSometimes(own: Life, probability: number): void {
    if (!isCalm) restartSoon(own, probability, SECOND);
  }

  /** Someone restarts a process whose store fails, or works again. */
  function restartSoon(own: Life, probability = 0.25, withinMs = 5 * SECOND): void {
    if (!has('stop') || !kernel.chance(probability)) return;
    kernel.after(kernel.between(0, withinMs), () => {
      if (isCalm || own.steadySince === undefined || own.machine.isPaused()) return;
      if (own.host.life === own) void stop(own).catch(bug);
    });
  }

  /** The database goes away, and nobody learns what became of the statements that were under way. */
  function breakOff(own: Life): void {
    if (isCalm) return;
    act('database away');
    backend.cutOff?.();
    for (const { life } of hosts) if (life !== undefined) watch.troubled(life.machine.name);
    troubleStore({ fails: 1, slow: 0 }, own);
    restartSoon(own, 0.5);
  }

  function worsenStore(own: Life): void {
    if (isShared && kernel.chance(0.3)) {
      isAboutToBreak = true;
      return;
    }
    act('bad store');
    restartSoon(own);
    troubleStore({ fails: kernel.between(0, 1), slow: kernel.between(0, 0.5) }, own);
  }

  /** The store is like this for a while. */
  function troubleStore(trouble: StoreWeather, own: Life): void {
    storeWeather = trouble;
    later(kernel.between(SECOND, 10 * MINUTE), () => {
      storeWeather = usualStore;
      disturbedAt = kernel.now();
      restartSoon(own);
    });
  }

  /** Kinds of faults, with their shares. */
  function faultOf(drawn: number): FaultKind {
    if (drawn < 0.3) return 'kill';
    if (drawn < 0.4) return 'stop';
    if (drawn < 0.6) return 'pause';
    if (drawn < 0.7) return 'clock set';
    if (drawn < 0.85) return 'bad network';
    return isShared && drawn > 0.92 ? 'failover' : 'bad store';
  }

  function disturb(): void {
    if (isCalm) return;
    const [wait, place, drawn] = [pick(), pick(), pick()];
    kernel.after((-Math.log(1 - wait) * 25 * MINUTE) / (2 * hosts.length - 1), disturb);
    const own = hosts[Math.floor(place * hosts.length)]?.life;
    const kind = faultOf(drawn);
    if (own === undefined || own.machine.isPaused() || !has(kind)) return;
    if (kind === 'kill') void kill(own).catch(bug);
    else if (kind === 'stop') {
      if (own.steadySince !== undefined) void stop(own).catch(bug);
    } else if (kind === 'pause') pause(own);
    else if (kind === 'clock set') {
      if (isShared && kernel.chance(0.4)) setDatabaseClockBack();
      else setClock(own);
    } else if (kind === 'bad network') worsenNetwork();
    else if (kind === 'failover') failOver();
    else worsenStore(own);
  }

  /** Each time the clock is set back by less than an interval, the last tick does not repeat. */
  function setBackSince(at: number, periodMs: number): number {
    const setBacks = hosts.map(({ life }) => {
      const recent = life?.setBacks.filter((each) => each.at >= at && each.ms < periodMs) ?? [];
      return recent.reduce((total, { ms }) => total + ms, 0);
    });
    return Math.max(...setBacks);
  }

  /** Looks for projects that are not polled although they are due. */
  function checkRhythm(): void {
    kernel.after(20 * SECOND, checkRhythm);
    const now = kernel.now();
    const lived = hosts.map(({ life }) => life?.steadySince ?? Infinity);
    const since = isShared
      ? Math.max(disturbedAt, oldLeasesUntil, ...lived)
      : (lived[0] ?? Infinity);
    if (!Number.isFinite(since) || storeWeather !== usualStore) return;
    for (const { id, periodMs } of projects) {
      if (!rollouts.isWatched(id)) continue;
      const last = lastStarts.get(id) ?? NEVER;
      // Its tick was up to that much earlier.
      const setBackMs = setBackSince(last.at - patienceMs, periodMs);
      const wall = START + (hosts[0]?.wallOffset ?? 0) + now - patienceMs;
      // The last run that was due by the clock of the machine.
      const dueAt = Math.floor((wall - JITTER_MS) / periodMs) * periodMs;
      // A kill can have taken the outcome of the last poll.
      const isForgotten =
        Math.max(last.wall, last.before) + setBackMs < dueAt &&
        // A process whose clock is behind the last poll cannot tell whether it missed a run since.
        last.latest < wall + patienceMs &&
        last.at < since &&
        now > since + patienceMs;
      if (isForgotten && !isShared) {
        fault(`${id} was due ${Math.round((wall - dueAt) / SECOND)} s ago and is not polled`);
      } else if (now - Math.max(last.at, since) > periodMs + setBackMs + JITTER_MS + patienceMs) {
        fault(`${id} is not polled for ${Math.round((now - last.at) / SECOND)} s`);
      }
    }
  }

  function turnWorld(): void {
    if (isCalm && kernel.now() > durationMs - CALM_MS / 2) return;
    world.step();
    kernel.after(kernel.between(20 * SECOND, 2 * MINUTE), turnWorld);
  }

  for (const host of hosts) later(random() * SECOND, () => void begin(host).catch(bug));
  turnWorld();
  disturb();
  if (has('reload')) rollouts.start();
  checkRhythm();
  for (let at = 0; at < durationMs - CALM_MS && faults.length === 0; at += HOUR) {
    await kernel.runUntil(Math.min(at + HOUR, durationMs - CALM_MS));
  }
  isCalm = true;
  isAboutToFail = false;
  isAboutToBreak = false;
  storeWeather = usualStore;
  if (faults.length === 0) {
    for (const work of put) work();
    rollouts.end();
    await kernel.runUntil(durationMs - hosts.length * MAX_STOP_MS);
  }
  for (const [index, { name, life }] of hosts.entries()) {
    if (faults.length > 0) break;
    if (life?.stop === undefined) fault(`no process runs on ${name} at the end`);
    else {
      const end = index === hosts.length - 1 ? 'last' : 'not the last';
      await kernel.runUntil(kernel.now() + MAX_STOP_MS, stop(life, end));
    }
  }
  for (const { life } of hosts) life?.access.kill();
  return {
    faults,
    digest: kernel.digest(),
    trace: kernel.trace(),
    days: kernel.now() / DAY,
    acts,
    ...oracle.figures(),
  };
}

/** Returns a function to call with each request of any worker: the number in the last 10 s, if it is too high. */
function watchSharedRate(kernel: Kernel): () => number | undefined {
  const sent: number[] = [];
  return () => {
    const at = kernel.now();
    sent.push(at);
    while ((sent[0] ?? at) <= at - 10 * SECOND) sent.shift();
    return sent.length > 10 * MAX_REQUESTS_PER_SECOND * 1.05 + 1 ? sent.length : undefined;
  };
}
