import type { AccessOptions } from '../backend.ts';
import type { Kernel } from '../kernel.ts';
import { START } from '../machine.ts';
import { kindsOf } from './statement-kinds.ts';
import { type Awaitable, next, type StatementServer } from './statement-server.ts';

/** The process that sends statements, and its callbacks for their effects. */
type SendingProcess = Pick<
  AccessOptions,
  'machine' | 'onClaiming' | 'onConfigured' | 'onFailureClaimed' | 'onCommitted'
>;

export interface WatchedServerOptions {
  readonly kernel: Kernel;
  readonly server: StatementServer;
  /** How far the clock of the database is off, ms. */
  readonly clockOffset: () => number;
  readonly fault: (text: string) => void;
}

type Rows = Awaitable<readonly unknown[]>;

interface ClaimedFailure {
  readonly project: string;
  /** Null while it is configured. */
  readonly removed_at: number | null;
}

/** Creates a function that executes a statement, reports its effects, and a fault if its process may not cause them. */
export function watchServer({
  kernel,
  server,
  clockOffset,
  fault,
}: WatchedServerOptions): (
  process: SendingProcess,
  text: string,
  values: readonly unknown[],
) => Rows {
  function postponeFailure(
    { machine }: SendingProcess,
    values: readonly unknown[],
    run: () => Rows,
  ) {
    if (server.claimant === undefined) return run();
    const id = Number(values[0]);
    const before = server.claimant(id);
    return next(run(), (rows) => {
      if (before !== null && before !== machine.name && server.claimant?.(id) !== before) {
        fault(`${machine.name} freed failure ${id}, which ${before} has claimed`);
      }
      return rows;
    });
  }

  function configure(process: SendingProcess, values: readonly unknown[], run: () => Rows) {
    const projects = values[0] as readonly string[];
    const isConditional = values[3] !== null;
    return next(server.projects(), (stored) => {
      const before = new Set(stored.flatMap((row) => (row.removed_at === null ? row.id : [])));
      return next(run(), (rows) => {
        const [made] = rows as readonly { readonly epoch: number | null }[];
        if (made !== undefined && made.epoch !== null) {
          kernel.note(`${process.machine.name} configures ${projects.join()}`);
          const added = projects.filter((id) => !before.has(id));
          process.onConfigured({ projects, added, isConditional });
        }
        return rows;
      });
    });
  }

  function claimFailures({ onFailureClaimed }: SendingProcess, run: () => Rows) {
    return next(run(), (rows) => {
      for (const { project, removed_at } of rows as readonly ClaimedFailure[]) {
        if (removed_at === null) onFailureClaimed(project);
      }
      return rows;
    });
  }

  function claim({ machine, onClaiming }: SendingProcess, run: () => Rows) {
    const onClaimed = onClaiming();
    return next(run(), (rows) => {
      const claimed = (rows as readonly { readonly id: string }[]).map(({ id }) => id);
      if (claimed.length > 0) kernel.note(`${machine.name} owns ${claimed.join()}`);
      onClaimed(claimed);
      return rows;
    });
  }

  function commit({ machine, onCommitted }: SendingProcess, run: () => Rows) {
    return next(server.projects(), (projects) => {
      const before = new Map(projects.map(({ id, version, owner }) => [id, { version, owner }]));
      return next(run(), (rows) =>
        next(server.projects(), (after) => {
          for (const { id, version, removed_at } of after) {
            const earlier = before.get(id);
            if (version === earlier?.version) continue;
            if (earlier?.owner !== machine.name) {
              fault(`${machine.name} committed ${id}, which ${earlier?.owner ?? 'nobody'} owns`);
            }
            if (removed_at !== null) {
              fault(`${machine.name} committed ${id}, which nobody has configured`);
            }
            onCommitted(id);
          }
          return rows;
        }),
      );
    });
  }

  return (process, text, values) => {
    const nowUs = Math.round((START + kernel.now() + clockOffset()) * 1000);
    const run = () => server.run(text, values, nowUs);
    const kinds = kindsOf(text);
    if (kinds.postponesFailure) return postponeFailure(process, values, run);
    if (kinds.configures) return configure(process, values, run);
    if (kinds.claimsFailures) return claimFailures(process, run);
    if (kinds.claims) return claim(process, run);
    if (kinds.commits) return commit(process, run);
    return run();
  };
}
