import type { Course, Host } from './parts.ts';

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

export function createHosts(names: readonly string[]): readonly Host[] {
  return names.map((name) => ({ name, wallOffset: 0, life: undefined }));
}
