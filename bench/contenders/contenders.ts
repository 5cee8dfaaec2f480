import type { OpenContender } from './contender.ts';

/** Contenders that run in Node, by name. A process loads only the one it runs, because imports cost memory. */
export const NODE_CONTENDERS = {
  'not modified': async () => (await import('./floors.ts')).notModified,
  download: async () => (await import('./floors.ts')).download,
  sha256: async () => (await import('./floors.ts')).sha256,
  parse: async () => (await import('./floors.ts')).parse,
  insert: async () => (await import('./insert.ts')).insert,
  evalwatch: async () => (await import('./evalwatch.ts')).evalwatch,
  join: async () => (await import('./scrape.ts')).join,
  'evalwatch scrape': async () => (await import('./scrape.ts')).scrape,
  node: async () => (await import('./node-peer.ts')).nodePeer,
} as const satisfies Record<string, () => Promise<OpenContender>>;

export type NodeContender = keyof typeof NODE_CONTENDERS;
export type ContenderName = NodeContender | 'python';
