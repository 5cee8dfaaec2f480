import { join } from 'node:path';
import type * as EngineRoom from '../../src/app/engine.ts';
import type * as MaintenanceRoom from '../../src/app/maintenance.ts';
import type * as ReloadRoom from '../../src/app/reload.ts';
import type * as SchedulingRoom from '../../src/app/scheduling.ts';
import type { Config } from '../../src/config/config.ts';
import type { Logger } from '../../src/log/logger.ts';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type { MonitorEvent } from '../../src/monitor/events.ts';
import type { ReloadResult } from '../../src/web/reload-result.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';

/** Functions of the sources under test. */
export interface Sources {
  readonly openEngine: typeof EngineRoom.openEngine;
  readonly createScheduling: typeof SchedulingRoom.createScheduling;
  readonly createReload: typeof ReloadRoom.createReload;
  readonly startMaintenance: typeof MaintenanceRoom.startMaintenance;
  readonly unlessStoreFails: typeof ErrorsRoom.unlessStoreFails;
}

export async function loadSources(source: string): Promise<Sources> {
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  // The engine imports this file if there are several workers.
  await load('app/work-sharing.ts');
  return {
    ...(await load<typeof EngineRoom>('app/engine.ts')),
    ...(await load<typeof SchedulingRoom>('app/scheduling.ts')),
    ...(await load<typeof ReloadRoom>('app/reload.ts')),
    ...(await load<typeof ErrorsRoom>('monitor/errors.ts')),
    ...(await load<typeof MaintenanceRoom>('app/maintenance.ts')),
  };
}

export interface ProcessOptions {
  readonly kernel: Kernel;
  readonly machine: Machine;
  readonly sources: Sources;
  readonly config: Config;
  readonly outside: EngineRoom.Outside;
  readonly onEvent: (event: MonitorEvent) => void;
  readonly onError: (error: unknown) => void;
}

export interface Process {
  /** Applies another configuration, as the daemon does after it has read it. */
  readonly reload: (next: Config) => Promise<ReloadResult>;
  /** Stops the process in good order. */
  readonly stop: () => Promise<void>;
}

/** Starts the daemon without its web server: `startDaemon` with simulated surroundings. */
export async function startProcess(options: ProcessOptions): Promise<Process> {
  const { kernel, machine, sources, config, outside, onEvent, onError } = options;
  const { clock } = machine;
  const logger = tracingLogger(kernel, machine.name);
  const engine = await sources.openEngine({
    config,
    logger,
    clock,
    outside,
  });
  const { store, sharing, reporter } = engine;
  const scheduling = sources.createScheduling(engine, clock);
  engine.observe(onEvent);
  await engine.configure(config);
  await sharing?.worker.start();
  scheduling.apply();
  reporter.start();
  scheduling.start();
  const stopMaintenance = sources.startMaintenance({
    store,
    expectations: engine.expectations,
    retentionMs: config.store.retentionMs,
    clock,
    checkMounts: () => {},
    lookAtConfig: undefined,
  });
  let next = config;
  const reloading = sources.createReload({
    config: () => engine.config(),
    loadConfig: async () => next,
    logger,
    apply: async (loaded) => {
      await engine.configure(loaded);
      scheduling.apply();
      await sources.unlessStoreFails(() => engine.expectations.refresh());
    },
    onResult: () => {},
    onError,
  });
  const reload = async (wanted: Config) => {
    next = wanted;
    return await reloading.run();
  };
  const stop = async () => {
    stopMaintenance();
    scheduling.stop();
    engine.shutdown.begin(GRACE_MS);
    const reported = reporter.stop();
    await Promise.all([scheduling.idle(), reported, sharing?.worker.stop(reported)]);
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
    onLine: () => {},
  };
}
