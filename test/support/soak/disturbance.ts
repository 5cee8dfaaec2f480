import { setTimeout } from 'node:timers/promises';

/** Resolves to whether the condition became true in time. */
export async function until(condition: () => boolean, patienceMs: number): Promise<boolean> {
  const deadline = Date.now() + patienceMs;
  while (!condition()) {
    if (Date.now() > deadline) return false;
    await setTimeout(1);
  }
  return true;
}
