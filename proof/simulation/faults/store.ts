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

/** Hosts that are cut off from the database, while the others are not. */
export function createPartitions({ course }: Pick<Simulation, 'course'>) {
  const { kernel, leaseMs } = course;
  const ends = new Map<Host, number>();

  return {
    /** Cuts a host off for a while. */
    begin: (host: Host) => {
      const ms = kernel.between(SECOND, kernel.chance(0.3) ? 10 * MINUTE : 2 * leaseMs);
      course.act('partition');
      ends.set(host, Math.max(ends.get(host) ?? 0, kernel.now() + ms));
      course.later(ms, course.disturbed);
    },
    /** Whether the host is cut off: nothing that it or the database sends now arrives. */
    isCutOff: (host: Host) => !course.isCalm() && kernel.now() < (ends.get(host) ?? 0),
  };
}
