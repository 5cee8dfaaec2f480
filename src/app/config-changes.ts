import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.ts';
import { projectsOf } from './config-in-force.ts';

/** Maximum number of ids in each list, so that a log line stays short when thousands of projects change. */
const MAX_IDS = 20;

/** What a reload changed, in ids and names only: a value could be a secret. */
export interface ConfigChanges {
  /** Ids of projects, at most 20 in each list. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  /** Number of ids that these lists leave out; undefined if there are none. */
  readonly omitted: number | undefined;
  /** Changed options that belong to no project, by their name at the top of the file. */
  readonly sections: readonly string[];
}

/** Returns what differs between two configurations (docs/specification.md#reload). */
export function findChanges(before: Config, after: Config): ConfigChanges {
  const [old, next] = [projectsOf(before), projectsOf(after)];
  const lists = {
    added: [...next.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !next.has(id)),
    changed: [...next.keys()].filter(
      (id) => old.has(id) && !isDeepStrictEqual(old.get(id), next.get(id)),
    ),
  };
  const omitted = Object.values(lists).reduce(
    (sum, ids) => sum + Math.max(0, ids.length - MAX_IDS),
    0,
  );
  return {
    added: lists.added.slice(0, MAX_IDS),
    removed: lists.removed.slice(0, MAX_IDS),
    changed: lists.changed.slice(0, MAX_IDS),
    omitted: omitted === 0 ? undefined : omitted,
    sections: changedSections(before, after),
  };
}

function changedSections(before: Config, after: Config): readonly string[] {
  const sections = {
    service: ({ service, promptUrl }: Config) => ({ ...service, promptUrl }),
    jitter: (config: Config) => config.jitterMs,
    missing_after: (config: Config) => config.missingAfter,
    web: (config: Config) => config.web,
    log: (config: Config) => config.log,
    heartbeat: (config: Config) => config.heartbeat,
  };
  return Object.entries(sections)
    .filter(([, read]) => !isDeepStrictEqual(read(before), read(after)))
    .map(([name]) => name);
}
