import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Path prefixes of the slowest files, the slowest first: the last ones to start decide when a run ends. */
const LONGEST = [
  'test/proof/simulation',
  'test/e2e/alerting.',
  'test/e2e/page',
  'test/e2e/',
  'test/integration/workers',
  'test/integration/events',
  'test/unit/store/sqlite/lock',
  'test/integration/postgres/',
  'test/contract/',
  'test/integration/',
];

/**
 * Starts the files with processes of their own before those that share processes, each group slowest first. Vitest ends a
 * shared process when the next file belongs to another project, and a new process loads every module again.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const shares = ({ project }: TestSpecification) => Number(!project.config.isolate);
    const rank = ({ moduleId }: TestSpecification) => {
      const path = relative(this.ctx.config.root, moduleId);
      const place = LONGEST.findIndex((beginning) => path.startsWith(beginning));
      return place < 0 ? LONGEST.length : place;
    };
    // oxlint-disable-next-line unicorn/no-array-sort -- not the sort of an array
    const inOrder = await super.sort(files);
    return inOrder.toSorted((one, other) => shares(one) - shares(other) || rank(one) - rank(other));
  }
}
