import { setImmediate } from 'node:timers/promises';
import type { OwnedSnapshot, PollHealth, ProjectSnapshot } from '../../../monitor/ports/store.ts';
import type { Database } from '../database.ts';
import {
  CHANGED,
  type ChangedRow,
  healthOf,
  OWNED,
  type OwnedRow,
  PROJECTS_PER_VALUE,
  type StampRow,
} from '../sql/owned-snapshot.ts';
import { toBacklog } from '../../reads.ts';
import { toProjectSnapshot } from '../sql/snapshot.ts';

/** As many as connections: one by one, each would wait for the commits of many polls, and all at once delay them. */
const READS_AT_ONCE = 4;

/** A project as last read. */
interface ReadProject {
  readonly stamp: string;
  readonly project: ProjectSnapshot;
}

/**
 * Creates a function that reads the projects that this worker owns. It keeps them, and reads again only those that have
 * changed; of the others only their health, which every poll changes.
 */
export function createOwnedSnapshot(
  database: Pick<Database, 'query'>,
  worker: string,
): () => Promise<OwnedSnapshot> {
  let known: ReadonlyMap<string, ReadProject> = new Map();
  let serverStartedAt: string | undefined;

  /** Returns the project with its current health; undefined if it has to be read again. */
  function refreshed(row: StampRow): ReadProject | undefined {
    const [id, stamp] = row;
    const last = known.get(id);
    if (last?.stamp !== stamp) return undefined;
    const health = healthOf(row);
    return areEqual(last.project.health, health)
      ? last
      : { stamp, project: { ...last.project, health } };
  }

  return async () => {
    const parts = await database.query<OwnedRow>(OWNED, [worker]);
    const [first] = parts;
    if (first === undefined) throw new Error('an aggregate without groups has one row');
    if (first.server_started_at !== serverStartedAt) known = new Map();
    const read = new Map<string, ReadProject>();
    const changed: string[] = [];
    for (const { projects } of parts) {
      for (const row of projects ?? []) {
        const project = refreshed(row);
        if (project === undefined) changed.push(row[0]);
        else read.set(row[0], project);
      }
      await setImmediate();
    }
    const chunks = chunksOf(changed).values();
    const readers = Array.from({ length: READS_AT_ONCE }, async () => {
      for (const asked of chunks) {
        const [row] = await database.query<ChangedRow>(CHANGED, [worker, asked]);
        for (const [stamp, fields] of row?.projects ?? []) {
          const project = toProjectSnapshot(fields);
          read.set(project.project, { stamp, project });
        }
      }
    });
    const ended = await Promise.allSettled(readers);
    // The next scrape goes on with what was read.
    known = read;
    serverStartedAt = first.server_started_at;
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return {
      projects: Array.from(read.values(), ({ project }) => project),
      configured: first.configured,
      backlog: toBacklog(first),
    };
  };
}

function chunksOf(projects: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(projects.length / PROJECTS_PER_VALUE);
  return Array.from({ length: count }, (_, n) =>
    projects.slice(n * PROJECTS_PER_VALUE, (n + 1) * PROJECTS_PER_VALUE),
  );
}

function areEqual(one: PollHealth, other: PollHealth): boolean {
  return (
    one.up === other.up &&
    one.consecutiveFailures === other.consecutiveFailures &&
    one.reason === other.reason &&
    one.lastPollAt === other.lastPollAt &&
    one.lastSuccessAt === other.lastSuccessAt &&
    one.steadySince === other.steadySince
  );
}
