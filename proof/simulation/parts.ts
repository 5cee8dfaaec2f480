import type { Config } from '../../src/config/config.ts';
import type { RandomWorld } from '../random-world.ts';
import type { Access, Backend } from './backend.ts';
import type { createCourse } from './course.ts';
import type { createWallClocks } from './faults/clocks.ts';
import type { createFailovers } from './faults/failovers.ts';
import type { createEndings } from './faults/processes.ts';
import type { createConditions, createOutages, createPartitions } from './faults/store.ts';
import type { Machine } from './machine.ts';
import type { Network } from './network.ts';
import type { Process, Sources } from './process.ts';
import type { createRollouts } from './rollouts.ts';
import type { createCalm } from './rules/calm.ts';
import type { createReceivers } from './rules/receivers.ts';
import type { createOracle } from './rules/oracle.ts';
import type { createDeadLeases, createRhythm } from './rules/rhythm.ts';
import type { createRequestRate, createWatch } from './rules/watch.ts';

/** A run with the parts that run, disturb and judge it. Each is made with those before it, and calls the others later. */
export interface Simulation {
  readonly course: Course;
  readonly sources: Sources;
  readonly hosts: readonly Host[];
  readonly world: RandomWorld;
  readonly backend: Backend;
  readonly conditions: ReturnType<typeof createConditions>;
  /** Time within which a poll that is due has to begin, ms. */
  readonly patienceMs: number;
  oracle: ReturnType<typeof createOracle>;
  requestRate: ReturnType<typeof createRequestRate>;
  watch: ReturnType<typeof createWatch>;
  rollouts: ReturnType<typeof createRollouts>;
  wallClocks: ReturnType<typeof createWallClocks>;
  partitions: ReturnType<typeof createPartitions>;
  deadLeases: ReturnType<typeof createDeadLeases>;
  rhythm: ReturnType<typeof createRhythm>;
  calm: ReturnType<typeof createCalm>;
  endings: ReturnType<typeof createEndings>;
  receivers: ReturnType<typeof createReceivers>;
  failovers: ReturnType<typeof createFailovers>;
  outages: ReturnType<typeof createOutages>;
  /** Starts a process on a host, and another one if its store fails. */
  start: (host: Host) => void;
}

/** State of a run that all of its parts share, with the faults found so far. */
export type Course = ReturnType<typeof createCourse>;

/** A machine on which one process runs at a time. */
export interface Host {
  readonly name: string;
  /** How far its wall clock is off, ms. */
  wallOffset: number;
  life: Life | undefined;
}

/** A process that runs, starts or stops. */
export interface Life {
  readonly host: Host;
  /** Configuration in force, or in force once the process has started. */
  config: Config;
  /** Virtual time at which it came into force. */
  configuredAt: number;
  isReloading: boolean;
  readonly machine: Machine;
  readonly network: Network;
  readonly access: Access;
  /** Virtual time, ms. */
  readonly startedAt: number;
  /** Undefined until the process has started. */
  stop?: Process['stop'];
  reload?: Process['reload'];
  /** Virtual time at which it began to run undisturbed; Infinity during a pause, undefined while it starts or stops. */
  steadySince: number | undefined;
  pausedAt: number;
  resumedAt: number;
}
