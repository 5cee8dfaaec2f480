import type { Access } from './backend.ts';
import type { Machine } from './machine.ts';
import type { Network } from './network.ts';
import type { Process } from './process.ts';
import type { Reloading } from './rollouts.ts';

/** A machine on which one process runs at a time. */
export interface Host {
  readonly name: string;
  /** How far its wall clock is off, ms. */
  wallOffset: number;
  life: Life | undefined;
}

/** A process that runs, starts or stops. */
export interface Life extends Reloading {
  readonly host: Host;
  readonly machine: Machine;
  readonly network: Network;
  readonly access: Access;
  /** Virtual time, ms. */
  readonly startedAt: number;
  stop?: Process['stop'];
  reload?: Process['reload'];
  /** Virtual time at which it began to run undisturbed; Infinity during a pause, undefined while it starts or stops. */
  steadySince: number | undefined;
  pausedAt: number;
  resumedAt: number;
}

export function createHosts(names: readonly string[]): readonly Host[] {
  return names.map((name) => ({ name, wallOffset: 0, life: undefined }));
}

/** Returns this life if it is the current one of a host. */
export function currentLife(hosts: readonly Host[], life: Reloading): Life | undefined {
  return hosts.find((host) => host.life === life)?.life;
}
