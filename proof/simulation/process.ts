import { join } from 'node:path';
import type * as EngineRoom from '../../src/app/engine.ts';
import type * as NotifierRoom from '../../src/app/notifier.ts';
import type * as MaintenanceRoom from '../../src/app/maintenance.ts';
import type * as ReloadRoom from '../../src/app/reload.ts';
import type * as SchedulingRoom from '../../src/app/scheduling.ts';
import type { Config } from '../../src/config/config.ts';
import type { Logger } from '../../src/log/logger.ts';
import type { FinishedPoll, MonitorEvent } from '../../src/monitor/events.ts';
import type { ConfiguredProjects } from './backend.ts';
import type { Kernel } from './kernel.ts';
import { type Machine, createMachine } from './machine.ts';
import { type Network, type NetworkOptions, createNetwork } from './network.ts';
import type { Host, Life, Simulation } from './parts.ts';
import { MINUTE, SECOND } from './scenario.ts';

/** Functions of the sources under test. */
export type Sources = Awaited<ReturnType<typeof loadSources>>;

export async function loadSources(source: string) {
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  // The engine imports this file if there are several workers.
  await load('coordination/worker.ts');
  return {
    ...(await load<typeof EngineRoom>('app/engine.ts')),
    ...(await load<typeof SchedulingRoom>('app/scheduling.ts')),
    ...(await load<typeof ReloadRoom>('app/reload.ts')),
    ...(await load<typeof MaintenanceRoom>('app/maintenance.ts')),
    ...(await load<typeof NotifierRoom>('app/notifier.ts')),
  };
}

interface ProcessOptions {
  readonly kernel: Kernel;
  readonly machine: Machine;
  readonly sources: Sources;
  readonly config: Config;
  readonly outside: EngineRoom.Outside;
  readonly send: ReturnType<Simulation['receivers']['senderOf']>;
  readonly onEvent: (event: MonitorEvent) => void;
}

export type Process = Awaited<ReturnType<typeof startProcess>>;

/** Starts the daemon without its web server: `startDaemon` with simulated surroundings. */
async function startProcess(options: ProcessOptions) {
  const { kernel, machine, sources, config, outside, send, onEvent } = options;
  const { clock } = machine;
  const logger = tracingLogger(kernel, machine.name);
  const engine = await sources.openEngine({
    config,
    logger,
    clock,
    outside,
  });
  const scheduling = new sources.Scheduling(engine, clock);
  const notifier = new sources.Notifier(engine, clock, send);
  engine.observe(onEvent);
  await engine.configure(config);
  await engine.worker?.start();
  scheduling.start();
  notifier.start();
  sources.startMaintenance(engine, clock, []);
  let next = config;
  const reloading = new sources.Reload(engine, scheduling, clock, async () => next);
  /** Applies another configuration, as the daemon does after it has read it. */
  const reload = async (wanted: Config) => {
    next = wanted;
    return await reloading.run();
  };
  /** Stops the process in good order. */
  const stop = async () => {
    await Promise.all([scheduling.stop(GRACE_MS), notifier.stop()]);
    await engine.close();
  };
  return { reload, stop };
}

const GRACE_MS = 10_000;

/** Writes each line to the trace. */
function tracingLogger(kernel: Kernel, name: string): Logger {
  const write =
    (level: string): Logger['info'] =>
    (fields) =>
      kernel.note(`${name} ${level} ${JSON.stringify(fields)}`);
  return {
    debug: () => {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    setLevel: () => {},
    written: { debug: 0, info: 0, warn: 0, error: 0 },
  };
}

/** Probability that a process is paused while a request of it is on its way, with one project. */
const SUDDEN_PAUSE = 0.02;
/** The same while it requests the details of a failure, which it must not report after its lease. */
const SUDDEN_PAUSE_AT_DETAIL = 0.05;
/** The same just before the end of that answer, which then may arrive after the lease. */
const SUDDEN_PAUSE_AT_END = 0.05;
/** Probability that a process is stopped soon after a request for failure details. */
const STOP_AT_DETAIL = 0.02;
/** The same after a single write that the disk refused: the stop finds a disk that takes everything. */
const STOP_AT_REFUSAL = 0.6;
/** Time after a change of the configuration, or a pause, after which nothing that was sent before arrives, ms. */
const FORGOTTEN_MS = 2 * MINUTE;
/** Upper bound of the time that passes while a process measures 1 ms, ms. */
const FASTEST_CLOCK = 1.001;
/** Events after which a process may die before its next step. */
const SHORT_LIVED: ReadonlySet<string> = new Set([
  'record.transition',
  'experiment.finished',
  'prompt.failed',
  'poll.finished',
  'notification.sent',
]);

/** Whether a process has a project in its configuration, or may have it. */
function isConfigured({ config, isReloading }: Life, project: string): boolean {
  return isReloading || config.projects.some(({ id }) => id === project);
}

/** What a store calls when something happens to the statements of a process. */
export type Hooks = ReturnType<typeof createHooks>;

/** @param addedAt when each project was last added to those that are configured in the database */
function createHooks(
  simulation: Simulation,
  machine: Machine,
  life: () => Life,
  addedAt: Map<string, number>,
) {
  const { course, oracle, watch, rollouts, failovers, endings } = simulation;
  const { kernel, fault } = course;
  const { name } = machine;

  return {
    machine,
    /** Called when a write is executed, before its answer arrives. */
    onWritten: () => endings.dieSometimes(life()),
    onRefused: () => {
      if (simulation.conditions.isStoreUsual()) endings.stopSometimes(life(), STOP_AT_REFUSAL);
    },
    /** Whether the process is cut off: nothing that it or the store sends now arrives. */
    isCutOff: () => simulation.partitions.isCutOff(life().host),
    /** Called when a commit of a poll with listings is sent. */
    onCommitting: (project: string) => {
      simulation.outages.committing(life());
      failovers.committing(project);
    },
    /** Called when a commit of a poll with listings is stored. */
    onCommitted: (project: string) => {
      failovers.committed(project);
      oracle.committed(name, project);
    },
    onConfigured: (change: ConfiguredProjects) => {
      for (const project of change.added) addedAt.set(project, kernel.now());
      rollouts.configured(life(), change);
    },
    /** Called when the process changes a failure of a project that is configured in the database. */
    onFailureTaken: (project: string) => {
      const own = life();
      // It may still act on what it read before a reload, a pause or the change of another worker.
      const changedAt = Math.max(own.configuredAt, own.resumedAt, addedAt.get(project) ?? 0);
      if (isConfigured(own, project) || kernel.now() < changedAt + FORGOTTEN_MS) return;
      fault(`${name}, which has not configured ${project}, takes a failure of it`);
    },
    /** Called when a request is lost, or answered late. */
    onTrouble: () => watch.troubled(name),
    onRenewed: () => {
      watch.renewed(name);
      simulation.deadLeases.renewed(name);
    },
    onLeft: () => {
      watch.left(name);
      simulation.deadLeases.left(name);
    },
  };
}

/** Returns the function that starts a process on a host, and another one if its store fails. */
export function createStarts(
  simulation: Simulation,
  answer: NetworkOptions['answer'],
): (host: Host) => void {
  const { course, oracle, watch, rollouts, endings } = simulation;
  const { kernel, fault, bug } = course;
  let lives = 0;
  /** When each project was last added to those that are configured in the database. */
  const addedAt = new Map<string, number>();

  function connect(machine: Machine, life: () => Life): Network {
    const countRequest = simulation.requestRate.watch(machine);
    return createNetwork({
      kernel,
      machine,
      answer,
      weather: simulation.conditions.network,
      onSent: (isDetail) => {
        countRequest();
        const usual = SUDDEN_PAUSE / course.projects.length;
        endings.pauseSometimes(life(), isDetail ? SUDDEN_PAUSE_AT_DETAIL : usual, isDetail);
        if (isDetail) endings.stopSometimes(life(), STOP_AT_DETAIL);
        rollouts.sent(life());
      },
      onEnding: (isDetail) => {
        if (isDetail) endings.pauseSometimes(life(), SUDDEN_PAUSE_AT_END, isDetail);
      },
      onListing: (listing) => oracle.read(machine.name, listing),
    });
  }

  /** Checks that a poll did not begin after a reload that removed its project. A commit that is on its way then is told. */
  function checkOutcome(own: Life, { project, durationMs }: FinishedPoll): void {
    if (isConfigured(own, project)) return;
    const begunAt = kernel.now() - durationMs * FASTEST_CLOCK;
    if (begunAt <= own.configuredAt) return;
    fault(`${own.machine.name} tells the outcome of a poll of ${project}, a removed project`);
  }

  function observe(own: Life, event: MonitorEvent): void {
    const { rhythm } = simulation;
    const { name } = own.machine;
    if (event.type === 'scheduler.started_poll') {
      kernel.note(`${name} polls ${event.project}`);
      if (!isConfigured(own, event.project))
        fault(`${name} polls ${event.project}, a removed project`);
      rhythm.started(name, event.project);
    }
    if (event.type === 'poll.finished') {
      checkOutcome(own, event);
      rhythm.ended(name, event.project);
    }
    oracle.observe(name, event);
    simulation.receivers.observe(event);
    watch.observe(name, event);
    simulation.calm.observe(own.machine, event);
    if (SHORT_LIVED.has(event.type)) endings.dieSometimes(own);
  }

  async function begin(host: Host): Promise<void> {
    lives += 1;
    course.disturbed();
    const drift = 1 + kernel.between(-0.0002, 0.0002);
    const machine = createMachine(kernel, `${host.name}-${lives}`, {
      wallOffset: host.wallOffset,
      drift,
    });
    const life = () => own;
    const network = connect(machine, life);
    const hooks = createHooks(simulation, machine, life, addedAt);
    const store = await kernel.real(() => simulation.backend.access(hooks));
    const own: Life = {
      host,
      machine,
      network,
      access: store,
      config: rollouts.atStart(host.name),
      startedAt: kernel.now(),
      configuredAt: kernel.now(),
      isReloading: false,
      steadySince: undefined,
      pausedAt: -Infinity,
      resumedAt: -Infinity,
    };
    host.life = own;
    kernel.note(`${machine.name} starts`);
    try {
      const process = await startProcess({
        kernel,
        machine,
        sources: simulation.sources,
        config: own.config,
        outside: {
          openStore: store.open,
          service: { dispatcher: network.dispatcher, random: () => kernel.random() },
        },
        send: simulation.receivers.senderOf(life),
        onEvent: (event) => observe(own, event),
      });
      own.stop = process.stop;
      own.reload = process.reload;
      rollouts.started(own);
      own.steadySince = kernel.now();
      course.disturbed();
    } catch (error) {
      // The supervisor starts it again.
      if (!(error instanceof Error && error.name === 'StoreError')) throw error;
      kernel.note(`${machine.name} did not start: ${error.message}`);
      machine.kill();
      store.kill();
      host.life = undefined;
      course.later(5 * SECOND, () => start(host));
    }
  }

  function start(host: Host): void {
    void begin(host).catch(bug);
  }

  return start;
}
