import type { OwnershipChange } from '../coordination/share.ts';

/**
 * Returns a function that gathers changes of ownership, and in the next turn of the event loop calls `listener` once with the
 * projects that were taken or dropped; with undefined if a change names none, because then any project may be affected.
 */
export function gatherChanges(
  listener: (changed: readonly string[] | undefined) => void,
): (change: OwnershipChange) => void {
  let gathered: Set<string> | undefined;
  let isWhole = false;

  function deliver(projects: ReadonlySet<string>): void {
    const changed = isWhole ? undefined : [...projects];
    gathered = undefined;
    isWhole = false;
    listener(changed);
  }

  return ({ taken, dropped }) => {
    if (gathered === undefined) {
      const projects = new Set<string>();
      setImmediate(() => deliver(projects));
      gathered = projects;
    }
    for (const { project } of taken) gathered.add(project);
    for (const project of dropped) gathered.add(project);
    isWhole ||= taken.length + dropped.length === 0;
  };
}
