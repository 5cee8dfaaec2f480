import type { FinishRow, StoreReader } from '../../../src/monitor/ports/store.ts';
import type { Move, ServedListing, State } from './model.ts';

// A second implementation of docs/specification.md#experiments, written from that page and not from the daemon's code.

/** An experiment after some listings. */
interface Experiment {
  /** Whether a prompt of it has moved since it finished, or ever. */
  readonly hasMoved: boolean;
  /** Whether the last listing showed prompts, and none that runs. */
  readonly hasEnded: boolean;
}

/** A finish that must be stored. */
interface Finish {
  readonly process: string;
  readonly text: string;
  /** Its number, once it was told. */
  id: number | undefined;
  /** Whether its poll, or a later one of its process, has finished: it must have been told. */
  isReported: boolean;
}

interface Project {
  /** Experiment of each prompt. */
  readonly names: ReadonlyMap<string, string | undefined>;
  readonly experiments: ReadonlyMap<string, Experiment>;
  /** Statuses of the prompts of each experiment, sorted. */
  readonly statuses: ReadonlyMap<string, readonly string[]>;
  readonly finishes: readonly Finish[];
}

const NEW: Project = {
  names: new Map(),
  experiments: new Map(),
  statuses: new Map(),
  finishes: [],
};
const UNFINISHED = new Set(['PENDING', 'RUNNING']);

/** Finds which experiments finish with each listing, and compares that with what is stored and told. */
export function createFinishes(fault: (text: string) => void) {
  const projects = new Map<string, Project>();
  let total = 0;

  /** Returns a project after a listing of which the records, and these moves, are in `state`. */
  function after(
    { project, items }: ServedListing,
    { records }: State,
    moves: readonly Move[],
    process: string,
  ): Project {
    const before = projects.get(project) ?? NEW;
    const names = new Map(before.names);
    for (const [id, , name] of items) names.set(id, name);
    const listed = [...records].filter(([id, { gone }]) => !gone && names.get(id) !== undefined);
    const statuses = new Map(
      [...Map.groupBy(listed, ([id]) => names.get(id) ?? '')].map(
        ([name, all]) => [name, all.map(([, { status }]) => status).toSorted()] as const,
      ),
    );
    const moved = new Set(moves.map(({ id }) => names.get(id)));
    const experiments = new Map<string, Experiment>();
    const finishes: Finish[] = [];
    for (const name of new Set([...before.experiments.keys(), ...statuses.keys()])) {
      const own = statuses.get(name) ?? [];
      const was = before.experiments.get(name);
      const hasMoved = was?.hasMoved === true || moved.has(name);
      const hasEnded = own.length > 0 && !own.some((status) => UNFINISHED.has(status));
      const isConfirmed = was?.hasEnded === true && !moved.has(name);
      const finishesNow = hasMoved && hasEnded && isConfirmed;
      experiments.set(name, { hasMoved: hasMoved && !finishesNow, hasEnded });
      const text = textOf(name, own);
      if (finishesNow) finishes.push({ process, text, id: undefined, isReported: false });
    }
    return { names, experiments, statuses, finishes: [...before.finishes, ...finishes] };
  }

  return {
    /** Records a committed listing. */
    take: (process: string, entry: ServedListing, state: State, moves: readonly Move[]) => {
      const next = after(entry, state, moves, process);
      total += next.finishes.length - (projects.get(entry.project)?.finishes.length ?? 0);
      projects.set(entry.project, next);
    },
    /** Whether an experiment would finish with this listing. */
    isFinishing: (entry: ServedListing, state: State) =>
      after(entry, state, [], '').finishes.length >
      (projects.get(entry.project)?.finishes.length ?? 0),
    told: (process: string, row: FinishRow) => {
      const text = textOfRow(row);
      const finish = projects
        .get(row.project)
        ?.finishes.find(
          (one) => one.text === text && one.process === process && one.id === undefined,
        );
      if (finish === undefined)
        fault(`${process} told a finish of ${row.project} that is none: ${text}`);
      else finish.id = row.finishId;
    },
    /** Records that everything that a process has committed for a project has been told by now. */
    reported: (process: string, project: string) => {
      for (const finish of projects.get(project)?.finishes ?? []) {
        if (finish.process === process) finish.isReported = true;
      }
    },
    compare: async (
      reader: StoreReader,
      finishes: readonly FinishRow[],
    ): Promise<readonly string[]> => {
      const texts = new Map(finishes.map((row) => [row.finishId, textOfRow(row)]));
      const differences: string[] = [];
      for (const [project, { finishes: own, statuses }] of projects) {
        const compare = (what: string, expected: readonly string[], stored: readonly string[]) => {
          const [one, other] = [expected, stored].map((list) => list.toSorted().join());
          if (one !== other)
            differences.push(`${what} of ${project}: expected ${one}, stored ${other}`);
        };
        const isOwn = (row: { readonly project: string }) => row.project === project;
        compare(
          'finishes',
          own.map(({ text }) => text),
          finishes.filter(isOwn).map(textOfRow),
        );
        const rows = await reader.experiments({ project });
        compare(
          'experiments',
          [...statuses].flatMap(([name, all]) => all.map((status) => `${name} ${status}`)),
          rows.flatMap(({ experiment, counts }) =>
            Object.entries(counts).flatMap(([status, n]) =>
              Array.from({ length: n }, () => `${experiment} ${status}`),
            ),
          ),
        );
        for (const { text, id, isReported } of own) {
          if (id !== undefined && texts.get(id) !== text)
            differences.push(`told, not stored: finish ${id}, ${text}`);
          if (id === undefined && isReported)
            differences.push(`a finish of ${project} was not told: ${text}`);
        }
      }
      return differences;
    },
    /** Returns the function to call when the store has lost everything from now on. */
    save: () => {
      const saved = [...projects];
      return () => {
        projects.clear();
        for (const [project, state] of saved) projects.set(project, state);
      };
    },
    count: () => total,
  };
}

function textOf(name: string, statuses: readonly string[]): string {
  const count = (wanted: string) => statuses.filter((status) => status === wanted).length;
  return `${name} ${count('COMPLETED')} ${count('FAILED')}`;
}

function textOfRow({ experiment, counts }: FinishRow): string {
  return `${experiment} ${counts.COMPLETED} ${counts.FAILED}`;
}
