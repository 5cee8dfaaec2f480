import { createHash } from 'node:crypto';

/** Returns the digest of the ids of these projects, in any order. */
export function projectsDigestOf(projects: readonly string[]): string {
  const text = JSON.stringify(projects.toSorted());
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
