import type { Kernel } from './kernel.ts';
import type { Host } from './parts.ts';
import type { Project } from './scenario.ts';

/** State of a run that all of its parts share, with the faults found so far. */
export function createCourse(facts: {
  readonly kernel: Kernel;
  readonly projects: readonly Project[];
  /** Whether several workers share a database. */
  readonly isShared: boolean;
  readonly leaseMs: number;
}) {
  const { kernel } = facts;
  const faults: string[] = [];
  const acts: Record<string, number> = {};
  let isCalm = false;
  let disturbedAt = 0;
  /** Work that `later` has put off and that has not run yet. */
  const put = new Set<() => void>();

  /** Records a difference, and ends the run. */
  function fault(text: string): void {
    // Without a stack, which not every run has.
    kernel.note(`FAULT ${text.split('\n', 1).join()}`);
    faults.push(text);
    kernel.stop();
  }

  return {
    ...facts,
    fault,
    /** Records an error that should not have been thrown. */
    bug: (error: unknown) =>
      fault(`a bug: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
    faults: () => faults,
    /** Counts an act on the processes, which can delay polls. */
    act: (name: string) => {
      acts[name] = (acts[name] ?? 0) + 1;
      disturbedAt = kernel.now();
      kernel.note(`ACT ${name}`);
    },
    acts: () => acts,
    /** Records that something happens that can delay polls. */
    disturbed: () => {
      disturbedAt = kernel.now();
    },
    /** Returns when the last fault that can delay polls began or ended. */
    disturbedAt: () => disturbedAt,
    /** Runs `work` after `ms`, or when the calm begins. */
    later: (ms: number, work: () => void) => {
      let isDone = false;
      const once = () => {
        if (!isDone) work();
        isDone = true;
        put.delete(once);
      };
      put.add(once);
      kernel.after(ms, once);
    },
    /** Whether the time without faults has begun. */
    isCalm: () => isCalm,
    beginCalm: () => {
      isCalm = true;
    },
    /** Runs all work that was put off. */
    catchUp: () => {
      for (const work of put) work();
    },
  };
}

export function createHosts(names: readonly string[]): readonly Host[] {
  return names.map((name) => ({ name, wallOffset: 0, life: undefined }));
}
