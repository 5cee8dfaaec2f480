/** Prompts of the wide project: so many move in one commit that it spans dozens of pages. */
export const WIDE = 300;

export function wideId(n: number): string {
  return `prompt-${n}-${'x'.repeat(40)}`;
}

/** What the workload said of a call that had returned; true from then on. */
export type Said = readonly [what: 'configured' | 'committed' | 'settled', ...rows: string[]];
