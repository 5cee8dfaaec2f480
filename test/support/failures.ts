import { causeOf } from '../../src/domain/cause.ts';
import type { Settled, Settlement, Tries } from '../../src/domain/failure.ts';
import type { FailureKey, Store } from '../../src/monitor/ports/store.ts';

/** Returns the settlement with its cause, as the failure reporter stores it. */
export function withCause(settlement: Settlement): Settled {
  return { ...settlement, cause: causeOf(settlement.errorInfo).id };
}

/** Settles the pending failure of this transition; if none is pending, a failure that does not exist. */
export async function settle(
  store: Pick<Store, 'pendingFailures' | 'settleFailure'>,
  transitionId: number,
  settlement: Settlement,
  at: number,
): Promise<void> {
  await store.settleFailure(await keyOf(store, transitionId), withCause(settlement), at);
}

/** Postpones the pending failure of this transition; if none is pending, a failure that does not exist. */
export async function postpone(
  store: Pick<Store, 'pendingFailures' | 'postponeFailure'>,
  transitionId: number,
  tries: Tries,
): Promise<void> {
  await store.postponeFailure(await keyOf(store, transitionId), tries);
}

async function keyOf(
  store: Pick<Store, 'pendingFailures'>,
  transitionId: number,
): Promise<FailureKey> {
  const pending = await store.pendingFailures({ limitPerProject: Number.MAX_SAFE_INTEGER });
  const found = pending.find((failure) => failure.transitionId === transitionId);
  return found ?? { transitionId, token: undefined };
}
