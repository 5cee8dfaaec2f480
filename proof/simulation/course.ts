import type { Project } from './configuration.ts';
import type { Kernel } from './kernel.ts';

/** State of a run that all of its parts share, with the faults found so far. */
export interface Course {
  readonly kernel: Kernel;
  readonly projects: readonly Project[];
  /** Whether several workers share a database. */
  readonly isShared: boolean;
  readonly leaseMs: number;
  /** Records a difference, and ends the run. */
  readonly fault: (text: string) => void;
  /** Records an error that should not have been thrown. */
  readonly bug: (error: unknown) => void;
  readonly faults: () => readonly string[];
  /** Counts an act on the processes, which can delay polls. */
  readonly act: (name: string) => void;
  readonly acts: () => Readonly<Record<string, number>>;
  /** Records that something happens that can delay polls. */
  readonly disturbed: () => void;
  /** Returns when the last fault that can delay polls began or ended. */
  readonly disturbedAt: () => number;
  /** Runs `work` after `ms`, or when the calm begins. */
  readonly later: (ms: number, work: () => void) => void;
  /** Whether the time without faults has begun. */
  readonly isCalm: () => boolean;
  readonly beginCalm: () => void;
  /** Runs all work that was put off. */
  readonly catchUp: () => void;
}

export function createCourse(
  facts: Pick<Course, 'kernel' | 'projects' | 'isShared' | 'leaseMs'>,
): Course {
  const { kernel } = facts;
  const faults: string[] = [];
  const acts: Record<string, number> = {};
  let isCalm = false;
  let disturbedAt = 0;
  /** Work that `later` has put off and that has not run yet. */
  const put = new Set<() => void>();

  function fault(text: string): void {
    // Without a stack, which not every run has.
    kernel.note(`FAULT ${text.split('\n', 1).join()}`);
    faults.push(text);
    kernel.stop();
  }

  return {
    ...facts,
    fault,
    bug: (error) =>
      fault(`a bug: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
    faults: () => faults,
    act: (name) => {
      acts[name] = (acts[name] ?? 0) + 1;
      disturbedAt = kernel.now();
      kernel.note(`ACT ${name}`);
    },
    acts: () => acts,
    disturbed: () => {
      disturbedAt = kernel.now();
    },
    disturbedAt: () => disturbedAt,
    later: (ms, work) => {
      let isDone = false;
      const once = () => {
        if (!isDone) work();
        isDone = true;
        put.delete(once);
      };
      put.add(once);
      kernel.after(ms, once);
    },
    isCalm: () => isCalm,
    beginCalm: () => {
      isCalm = true;
    },
    catchUp: () => {
      for (const work of put) work();
    },
  };
}
