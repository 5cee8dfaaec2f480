import { BODIES } from './bodies.ts';
import { CONNECTIONS } from './connections.ts';
import type { Hostility } from './exchange.ts';
import { REDIRECTS } from './redirects.ts';
import { RUNS_OF_CHARACTERS } from './runs.ts';
import { STATUSES } from './statuses.ts';

/** Every kind of hostility that costs next to nothing, by the id of the project that gets it. */
export const KINDS: Readonly<Record<string, Hostility>> = {
  ...STATUSES,
  ...REDIRECTS,
  ...BODIES,
  ...CONNECTIONS,
  ...RUNS_OF_CHARACTERS,
};
