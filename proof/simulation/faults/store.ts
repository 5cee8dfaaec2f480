import { BEFORE_ARRIVAL_MS, type StoreWeather } from '../backend.ts';
import { CALM, FAIR, type Weather } from '../network.ts';
import type { Course, Host, Life, Simulation } from '../parts.ts';
import { MINUTE, SECOND } from '../scenario.ts';

const USUAL_DISK: StoreWeather = { fails: 0.003, slow: 0.003 };
const USUAL_DATABASE: StoreWeather = { fails: 0.002, slow: 0.003 };
const CALM_STORE: StoreWeather = { fails: 0, slow: 0 };

/** Current probabilities of faults of network and store. */
export function createConditions(course: Course) {
  const { kernel, isShared, isCalm } = course;
  const usualNetwork = FAIR;
  const usualStore = isShared ? USUAL_DATABASE : USUAL_DISK;
  let network: Weather = usualNetwork;
  let store: StoreWeather = usualStore;

  return {
    network: () => (isCalm() ? CALM : network),
    store: () => (isCalm() ? CALM_STORE : store),
    /** Whether the store has no phase of trouble. */
    isStoreUsual: () => store === usualStore,
    worsenNetwork: () => {
      course.act('bad network');
      const bad = () => kernel.between(0, 0.4);
      network = kernel.chance(0.3)
        ? { ...CALM, error: 1 }
        : { ...FAIR, refused: bad(), lost: bad(), cut: bad(), garbled: bad() };
      kernel.after(kernel.between(MINUTE, 20 * MINUTE), () => {
        network = usualNetwork;
      });
    },
    /** Slows the service for 10 s: polls take longer than others need to claim a project. */
    slowService: () => {
      const before = network;
      const slow = { ...before, slow: 0.6 };
      network = slow;
      kernel.after(10 * SECOND, () => {
        if (network === slow) network = before;
      });
    },
    /** Begins a phase of trouble of the store, up to 10 minutes long. */
    troubleStore: (trouble: StoreWeather, onEnd: () => void) => {
      store = trouble;
      course.later(kernel.between(SECOND, 10 * MINUTE), () => {
        store = usualStore;
        course.disturbed();
        onEnd();
      });
    },
    calmStore: () => {
      store = usualStore;
    },
  };
}

/** Probability that the store fails now and then while a process reloads. */
const FAILS_AT_RELOAD = 0.1;

/** Phases in which the store fails, or is away. */
export function createOutages(simulation: Simulation) {
  const { course, backend, hosts, watch, conditions, endings } = simulation;
  const { kernel } = course;
  /** Whether the database goes away once a commit is on its way. */
  let isAboutToBreak = false;

  /** Makes the database go away: the outcome of the statements under way is unknown. */
  function breakOff(own: Life): void {
    if (course.isCalm()) return;
    course.act('database away');
    backend.loseStatements?.();
    for (const { life } of hosts) if (life !== undefined) watch.troubled(life.machine.name);
    conditions.troubleStore({ fails: 1, slow: 0 }, () => endings.restartSoon(own));
    endings.restartSoon(own, 0.5);
  }

  function fail(own: Life): void {
    course.act('bad store');
    endings.restartSoon(own);
    const trouble = { fails: kernel.between(0, 1), slow: kernel.between(0, 0.5) };
    conditions.troubleStore(trouble, () => endings.restartSoon(own));
  }

  return {
    /** Makes the store fail now and then, or go away with the next commit. May restart this process, or that of the commit. */
    worsenStore: (own: Life) => {
      if (course.isShared && kernel.chance(0.3)) isAboutToBreak = true;
      else fail(own);
    },
    reloading: (own: Life) => {
      if (!course.isCalm() && kernel.chance(FAILS_AT_RELOAD)) fail(own);
    },
    /** Called when a commit of this process is sent. */
    committing: (own: Life) => {
      if (isAboutToBreak) kernel.after(kernel.between(BEFORE_ARRIVAL_MS, 4), () => breakOff(own));
      isAboutToBreak = false;
    },
    /** Keeps the database from going away at the next commit. */
    end: () => {
      isAboutToBreak = false;
    },
  };
}

/** Probability that a worker is cut off while a listing is on its way to it, divided by the number of projects. */
const AT_LISTING = 0.1;
/** How long such a listing takes, ms: a bit less than the time limit of a request. */
const MIN_LATE_MS = 9 * SECOND;
const MAX_LATE_MS = 9.8 * SECOND;
/** Minimum time until a worker that is cut off for a lease owns a project again: leases, plus ms. */
const MIN_RETURN_LEASES = 1.25;
const MIN_RETURN_MS = SECOND;

/** Hosts that are cut off from the database, while the others are not. */
export function createPartitions({ course, world }: Simulation) {
  const { kernel, isShared, leaseMs } = course;
  const isReturnPossible = isShared && MIN_RETURN_LEASES * leaseMs + MIN_RETURN_MS < MIN_LATE_MS;
  const ends = new Map<Host, number>();

  function cutOff(host: Host, ms: number): void {
    course.act('partition');
    ends.set(host, Math.max(ends.get(host) ?? 0, kernel.now() + ms));
    course.later(ms, course.disturbed);
  }

  return {
    /** Cuts a host off for a while. */
    begin: (host: Host) => {
      const maxMs = kernel.chance(0.3) ? 10 * MINUTE : 2 * leaseMs;
      cutOff(host, kernel.between(SECOND, maxMs));
    },
    /**
     * Called when a worker requests a listing. Sometimes cuts its host off meanwhile, so that others take the project, and may
     * give it back before the listing arrives. Returns the time that the listing takes then, ms.
     */
    delayListing: ({ host }: Life) => {
      const mayCutOff = isReturnPossible && !course.isCalm();
      if (!mayCutOff || !kernel.chance(AT_LISTING / course.projects.length)) return undefined;
      cutOff(host, leaseMs + kernel.between(0, 0.2 * SECOND));
      // The others get another listing.
      kernel.after(kernel.between(SECOND, leaseMs), () => world.step());
      return kernel.between(MIN_LATE_MS, MAX_LATE_MS);
    },
    /** Whether the host is cut off: nothing that it or the database sends now arrives. */
    isCutOff: (host: Host) => !course.isCalm() && kernel.now() < (ends.get(host) ?? 0),
  };
}
