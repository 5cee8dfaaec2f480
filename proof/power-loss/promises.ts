/** Number of prompts of the wide project. A commit that moves all of them spans dozens of pages. */
export const WIDE = 300;

export function wideId(n: number): string {
  return `prompt-${n}-${'x'.repeat(40)}`;
}

/** Report of the workload about a call that returned; true from then on. */
export type Acknowledgement = readonly [
  what: 'configured' | 'committed' | 'settled',
  ...rows: string[],
];
