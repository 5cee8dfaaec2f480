/** Projects with a failed attempt in their running poll. */
export interface FailingProjects {
  has(project: string): boolean;
  /** Begins a listing of the project. */
  beginListing(project: string): RunningListing;
}

interface RunningListing {
  /** Records that an attempt failed. */
  readonly onAttemptFailed: () => void;
  readonly end: () => void;
}

/** Both listings of a poll run concurrently: a failed attempt of one marks the project as failing until both have ended. */
export function createFailingProjects(): FailingProjects {
  const running = new Map<string, { listings: number; failed: boolean }>();
  return {
    has: (project) => running.get(project)?.failed ?? false,
    beginListing: (project) => {
      const poll = running.get(project) ?? { listings: 0, failed: false };
      poll.listings += 1;
      running.set(project, poll);
      return {
        onAttemptFailed: () => {
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
