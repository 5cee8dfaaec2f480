/** `atOnceMs`: missed polls run at once, and are stored with the others of that second. */
export const BOUNDS = { ownedMs: 15_000, polledMs: 20_000, atOnceMs: 2500, afterCrashMs: 30_000 };

export async function repeat<Result>(
  times: number,
  act: (n: number) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (let n = 0; n < times; n += 1) results.push(await act(n));
  return results;
}

export function over(what: string, ms: number, bound: number): readonly string[] {
  return ms > bound ? [`${what} only after ${ms} ms`] : [];
}

export function describe(found: readonly string[]): string {
  return `${found.length} differences:\n${found.slice(0, 20).join('\n')}`;
}

export function most(numbers: readonly number[]): number {
  return Math.max(0, ...numbers);
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
