import type { StoreWeather } from '../backend.ts';
import type { Course } from '../course.ts';
import { MINUTE, SECOND } from '../durations.ts';
import { CALM, FAIR, type Weather } from '../network.ts';

const USUAL_DISK: StoreWeather = { fails: 0.003, slow: 0.003 };
const USUAL_DATABASE: StoreWeather = { fails: 0.002, slow: 0.003 };
const CALM_STORE: StoreWeather = { fails: 0, slow: 0 };

/** How bad network and store are at the moment. */
export interface Conditions {
  readonly network: () => Weather;
  readonly store: () => StoreWeather;
  /** Whether the store has no phase of trouble. */
  isStoreUsual(): boolean;
  worsenNetwork(): void;
  /** For a moment, polls take longer than it takes others to claim a project. */
  slowService(): void;
  /** The store is like this for a while. */
  troubleStore(trouble: StoreWeather, onEnd: () => void): void;
  /** Ends a phase of trouble of the store. */
  calmStore(): void;
}

export function createConditions(course: Course): Conditions {
  const { kernel, isShared, has, isCalm } = course;
  const usualNetwork = has('bad network') ? FAIR : CALM;
  const usualStore = !has('bad store') ? CALM_STORE : isShared ? USUAL_DATABASE : USUAL_DISK;
  let network: Weather = usualNetwork;
  let store: StoreWeather = usualStore;

  return {
    network: () => (isCalm() ? CALM : network),
    store: () => (isCalm() ? CALM_STORE : store),
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
    slowService: () => {
      const before = network;
      const slow = { ...before, slow: 0.6 };
      network = slow;
      kernel.after(10 * SECOND, () => {
        if (network === slow) network = before;
      });
    },
    troubleStore: (trouble, onEnd) => {
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
