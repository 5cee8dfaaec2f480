import type { Statements } from './statement.ts';
import { addProject, compareTexts, holds, isLive, type ProjectRow, type Tables } from './tables.ts';

/** Models src/store/postgres/ownership/coordinator.ts, and the changes of the configuration of sql/projects.ts. */
export function workerStatements(tables: Tables): Statements {
  const { worker, project, last } = tables;

  function setOwner(row: ProjectRow, owner: string | null): void {
    row.owner = owner;
    row.epoch = last.epoch += 1;
  }

  function releaseAll(owner: string): void {
    for (const row of project.values()) if (row.owner === owner) setOwner(row, null);
  }

  function isFree({ owner }: ProjectRow, nowUs: number): boolean {
    return owner === null || !isLive(tables, owner, nowUs);
  }

  return {
    join: ([name, leaseMs, version, digest]: [string, number, string, string], nowUs) => {
      releaseAll(name);
      worker.set(name, {
        worker: name,
        expires_us: nowUs + leaseMs * 1000,
        program_version: version,
        config_digest: digest,
      });
      return [];
    },
    renew: ([name, leaseMs, digest]: [string, number, string], nowUs) => {
      const row = worker.get(name);
      if (row === undefined || row.expires_us <= nowUs) return [];
      worker.set(name, { ...row, expires_us: nowUs + leaseMs * 1000, config_digest: digest });
      return [{ worker: name }];
    },
    workers: ([name]: [string], nowUs) => {
      const configured = [...project.values()].filter(({ removed_at }) => removed_at === null);
      const owned = [...project.values()].filter(({ owner }) => owner === name);
      return [...worker.values()]
        .toSorted((one, other) => compareTexts(one.worker, other.worker))
        .map((row) => ({
          ...row,
          holds: holds(row, nowUs),
          remaining_ms: ((row.expires_us - nowUs) / 1e6) * 1000,
          owned: row.worker === name ? owned.length : null,
          owned_epochs:
            row.worker === name ? owned.reduce((sum, { epoch }) => sum + epoch, 0) : null,
          has_free: row.worker === name ? configured.some((one) => isFree(one, nowUs)) : null,
          configured_epoch: row.worker === name ? tables.configuration.epoch : null,
          projects_digest: row.worker === name ? tables.configuration.digest : null,
        }));
    },
    owned: ([name]: [string]) =>
      [...project.values()]
        .filter(({ owner }) => owner === name)
        .map(({ id, epoch }) => ({ id, epoch })),
    delete_expired: ([names, expires]: [string[], number[]]) => {
      for (const [index, name] of names.entries()) {
        if (worker.get(name)?.expires_us === expires[index]) worker.delete(name);
      }
      return [];
    },
    leave: ([name]: [string]) => {
      releaseAll(name);
      worker.delete(name);
      return [];
    },
    claim: ([name, ids, max, newest]: [string, string[], number, number], nowUs) => {
      last.epoch = Math.max(last.epoch, newest);
      if (!isLive(tables, name, nowUs)) return [];
      const wanted = new Set(ids);
      const free = [...project.values()]
        .filter((row) => row.removed_at === null && wanted.has(row.id) && isFree(row, nowUs))
        .toSorted((one, other) => {
          const [at, otherAt] = [one.next_tick_at ?? -Infinity, other.next_tick_at ?? -Infinity];
          return at === otherAt ? compareTexts(one.id, other.id) : at - otherAt;
        });
      return free.slice(0, max).map((row) => {
        setOwner(row, name);
        const { id, epoch, next_tick_at, up, consecutive_failures, reason } = row;
        const { last_poll_at, last_success_at, steady_since } = row;
        const times = { last_poll_at, last_success_at, steady_since };
        return { id, epoch, next_tick_at, up, consecutive_failures, reason, ...times };
      });
    },
    release: ([name, ids]: [string, string[]]) => {
      const given = new Set(ids);
      for (const row of project.values()) {
        if (row.owner === name && given.has(row.id)) setOwner(row, null);
      }
      return [];
    },
    grant: ([wanted, perSecond, withinMs]: [number, number, number], nowUs) => {
      const latest = nowUs + Math.round((1 + withinMs / 1000 + 1 / perSecond) * 1e6);
      const at = tables.rateNextUs <= latest ? Math.max(tables.rateNextUs, nowUs) : nowUs;
      const waitUs = at - nowUs;
      const places = 1 + Math.floor(((withinMs * 1000 - waitUs) / 1e6) * perSecond);
      const count = Math.max(0, Math.min(wanted, places));
      if (count === 0) return [];
      tables.rateNextUs = at + Math.round((count / perSecond) * 1e6);
      return [{ count, wait_ms: (waitUs / 1e6) * 1000 }];
    },
    owner: ([id]: [string], nowUs) => {
      const row = worker.get(project.get(id)?.owner ?? '');
      if (row === undefined || !holds(row, nowUs)) return [];
      return [{ worker: row.worker, remaining_ms: ((row.expires_us - nowUs) / 1e6) * 1000 }];
    },
    next_epoch: () => [{ epoch: (last.epoch += 1) }],
    configure_projects: ([ids, at, drawn, expected]: [string[], number, number, number | null]) => {
      const { configuration } = tables;
      const isNext =
        configuration.epoch < drawn && configuration.epoch === (expected ?? configuration.epoch);
      if (!isNext) return [{ epoch: null }];
      const epoch = (last.epoch += 1);
      tables.configuration = { epoch, digest: '' };
      const wanted = new Set(ids);
      // The statement does not see what it inserts.
      const stored = [...project.values()];
      for (const id of [...wanted].toSorted(compareTexts)) {
        if (!project.has(id)) addProject(tables, { id, at, epoch: (last.epoch += 1) });
      }
      for (const row of stored) {
        if (wanted.has(row.id) === (row.removed_at === null)) continue;
        row.removed_at = wanted.has(row.id) ? null : at;
        setOwner(row, null);
      }
      return [{ epoch }];
    },
    confirm_projects: ([ids, digest, epoch]: [string[], string, number]) => {
      const wanted = new Set(ids);
      const differs =
        ids.some((id) => project.get(id)?.removed_at !== null) ||
        [...project.values()].some(({ id, removed_at }) => removed_at === null && !wanted.has(id));
      if (tables.configuration.epoch === epoch && !differs)
        tables.configuration = { epoch, digest };
      return [{ differs }];
    },
  };
}
