import type { StoreWeather } from '../backend.ts';
import type { Course } from '../course.ts';
import { MINUTE, SECOND } from '../durations.ts';
import { CALM, FAIR, type Weather } from '../network.ts';

const USUAL_DISK: StoreWeather = { fails: 0.003, slow: 0.003 };
const USUAL_DATABASE: StoreWeather = { fails: 0.002, slow: 0.003 };
const CALM_STORE: StoreWeather = { fails: 0, slow: 0 };

/** Current probabilities of faults of network and store. */
export interface Conditions {
  readonly network: () => Weather;
  readonly store: () => StoreWeather;
  /** Whether the store has no phase of trouble. */
  isStoreUsual(): boolean;
  worsenNetwork(): void;
  /** Slows the service for 10 s: polls take longer than others need to claim a project. */
  slowService(): void;
  /** Begins a phase of trouble of the store, up to 10 minutes long. */
  troubleStore(trouble: StoreWeather, onEnd: () => void): void;
  calmStore(): void;
}

export function createConditions(course: Course): Conditions {
  const { kernel, isShared, isCalm } = course;
  const usualNetwork = FAIR;
  const usualStore = isShared ? USUAL_DATABASE : USUAL_DISK;
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
