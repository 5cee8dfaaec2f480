import type { TextFunction } from './text-function.ts';
import type { TextRule } from './texts.ts';

/** Maximum ratio of the times of a text and its half. */
const MAX_RATIO = 2.5;
/** Minimum time that can be compared, ms: the kernel may count in steps of 4 ms. */
const FLOOR_MS = 20;
/** Minimum time of all calls of a repeated measurement, ms. */
const SURE_MS = 100;
const FIRST_LENGTH = 4096;
/** How often a ratio that is too large is measured anew before it counts. */
const TRIES = 8;

/** End of a measurement: this many characters, or a text that takes this long, ms. */
export interface Limits {
  readonly length: number;
  readonly ms: number;
}

export interface Growth {
  /** Longest text that was tried, characters. */
  readonly length: number;
  /** CPU time of a call with that text, ms. */
  readonly ms: number;
  /** Largest ratio of two times that could be compared. */
  readonly ratio: number;
}

/**
 * Gives ever longer texts to a function. Measures CPU time of this thread, and repeats a measurement whose ratio is too
 * large, so that a slow or busy machine changes nothing.
 * @throws {Error} if twice the text takes more than 2.5 times as long, twice in a row: a single step is another method,
 * which costs more for each character, but is no growth
 */
export async function measureGrowth(
  { name, call, maxLength = Infinity }: TextFunction,
  rule: TextRule,
  limits: Limits,
): Promise<Growth> {
  let ratio = 0;
  let suspicion = '';
  const longest = Math.min(limits.length, maxLength);
  let length = FIRST_LENGTH;
  let ms = await cost(call, rule.make(length));
  while (suspicion !== '' || (length < longest && ms < limits.ms)) {
    // The steps are large until there is something to compare.
    const step = ms * 16 < FLOOR_MS ? 4 : 2;
    const next = length * step;
    const allowed = MAX_RATIO ** Math.log2(step);
    const [shorter, longer] = [rule.make(length), rule.make(next)];
    let nextMs = await cost(call, longer);
    for (let tries = 0; tries < TRIES && isTooMuch(ms, nextMs, allowed); tries += 1) {
      // The code may not have been compiled, or garbage of other calls was collected.
      const calls = Math.ceil(SURE_MS / nextMs);
      ms = await cost(call, shorter, calls * step);
      nextMs = await cost(call, longer, calls);
    }
    const found = `${ms.toFixed(1)} ms for ${length} characters, ${nextMs.toFixed(1)} for ${next}`;
    const isSteep = isTooMuch(ms, nextMs, allowed);
    if (isSteep && suspicion !== '') {
      throw new Error(`${name}: ${rule.name} takes ${suspicion}; ${found}`);
    }
    suspicion = isSteep ? found : '';
    if (!isSteep && nextMs > FLOOR_MS && step === 2) ratio = Math.max(ratio, nextMs / ms);
    [length, ms] = [next, nextMs];
  }
  return { length, ms, ratio };
}

function isTooMuch(ms: number, nextMs: number, allowed: number): boolean {
  return nextMs > FLOOR_MS && nextMs > allowed * ms;
}

/** Returns the average CPU time of a call, ms. */
async function cost(call: TextFunction['call'], text: string, calls = 1): Promise<number> {
  const begin = process.threadCpuUsage();
  for (let made = 0; made < calls; made += 1) {
    try {
      await call(text);
    } catch {
      // A rejected text counts like an accepted one.
    }
  }
  const { user, system } = process.threadCpuUsage(begin);
  return (user + system) / 1000 / calls;
}
