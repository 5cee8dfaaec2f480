/** Which projects have had a failed attempt in the poll that is running. */
export interface FailingProjects {
  has(project: string): boolean;
  /** A listing of the project begins. */
  begin(project: string): RunningListing;
}

interface RunningListing {
  /** An attempt of it has failed. */
  readonly failed: () => void;
  readonly end: () => void;
}

/** Both listings of a poll run side by side: what befalls one puts the project in trouble, until both are over. */
export function createFailingProjects(): FailingProjects {
  const running = new Map<string, { listings: number; failed: boolean }>();
  return {
    has: (project) => running.get(project)?.failed ?? false,
    begin: (project) => {
      const poll = running.get(project) ?? { listings: 0, failed: false };
      poll.listings += 1;
      running.set(project, poll);
      return {
        failed: () => {
          poll.failed = true;
        },
        end: () => {
          poll.listings -= 1;
          if (poll.listings === 0) running.delete(project);
        },
      };
    },
  };
}
