import { join } from 'node:path';
import type * as EngineRoom from '../../src/app/engine.ts';
import type * as MaintenanceRoom from '../../src/app/maintenance.ts';
import type * as SchedulingRoom from '../../src/app/scheduling.ts';
import type { Config } from '../../src/config/config.ts';
import type * as SecretsRoom from '../../src/evaluation-api/secrets.ts';
import type { Logger } from '../../src/log/logger.ts';
import type { MonitorEvent } from '../../src/monitor/events.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';

/** The rooms of the sources under test. */
export interface Sources {
  readonly openEngine: typeof EngineRoom.openEngine;
  readonly createScheduling: typeof SchedulingRoom.createScheduling;
  readonly startMaintenance: typeof MaintenanceRoom.startMaintenance;
  readonly createSecrets: typeof SecretsRoom.createSecrets;
}

export async function loadSources(source: string): Promise<Sources> {
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  // The engine imports it when it has several workers.
  await load('app/work-sharing.ts');
  return {
    ...(await load<typeof EngineRoom>('app/engine.ts')),
    ...(await load<typeof SchedulingRoom>('app/scheduling.ts')),
    ...(await load<typeof MaintenanceRoom>('app/maintenance.ts')),
    ...(await load<typeof SecretsRoom>('evaluation-api/secrets.ts')),
  };
}

export interface ProcessOptions {
  readonly kernel: Kernel;
  readonly machine: Machine;
  readonly sources: Sources;
  readonly config: Config;
  readonly outside: EngineRoom.Outside;
  readonly onEvent: (event: MonitorEvent) => void;
}

/** The daemon without its web server: `startDaemon` with simulated surroundings. Returns its orderly stop. */
export async function startProcess(options: ProcessOptions): Promise<() => Promise<void>> {
  const { kernel, machine, sources, config, outside, onEvent } = options;
  const { clock } = machine;
  const engine = await sources.openEngine({
    config,
    logger: tracingLogger(kernel, machine.name),
    secrets: sources.createSecrets(),
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
  return async () => {
    stopMaintenance();
    scheduling.stop();
    engine.shutdown.begin(GRACE_MS);
    const reported = reporter.stop();
    await Promise.all([scheduling.idle(), reported, sharing?.worker.stop(reported)]);
    await engine.close();
  };
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
