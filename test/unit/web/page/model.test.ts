import { describe, expect, it } from 'vitest';
import type { UnfinishedStatus } from '../../../../src/domain/status.ts';
import type { RowQuery, StatusRow } from '../../../../src/monitor/ports/store.ts';
import { longestWaiting } from '../../../../src/web/page/model.ts';
import { listing, stored } from '../../metrics/setup.ts';

type Prompt = readonly [project: string, status: UnfinishedStatus, since: number];

/** Creates a store with these prompts that records its queries. */
function storeOf(prompts: readonly Prompt[]) {
  const asked: string[] = [];
  const rows = prompts.map(([project, status, since], index): StatusRow => {
    const promptId = `${project}-${index}`;
    return {
      project,
      promptId,
      promptName: undefined,
      status,
      statusRaw: undefined,
      since,
      missing: 0,
    };
  });
  const projects = [...new Set(rows.map(({ project }) => project))].map((id) => {
    const oldest = new Map<UnfinishedStatus, number>();
    for (const [project, status, since] of prompts) {
      if (project === id) oldest.set(status, Math.min(since, oldest.get(status) ?? Infinity));
    }
    return stored(id, { listings: new Map([['prompt', listing({ oldest })]]) });
  });
  const store = {
    statuses: async ({ project, status, limit }: RowQuery) => {
      asked.push(`${project} ${status}`);
      return rows
        .filter((row) => row.project === project && row.status === status)
        .toSorted((a, b) => a.since - b.since)
        .slice(0, limit);
    },
  };
  return { asked, longest: () => longestWaiting(store, projects) };
}

const many = (project: string, status: UnfinishedStatus, since: number) =>
  Array.from({ length: 20 }, (): Prompt => [project, status, since]);

describe('longestWaiting', () => {
  it('queries only the first project if all prompts have waited equally long', async () => {
    const { asked, longest } = storeOf(['a', 'b', 'c'].flatMap((id) => many(id, 'RUNNING', 5)));
    expect((await longest()).map(({ project }) => project)).toEqual(Array(10).fill('a'));
    expect(asked).toEqual(['a RUNNING']);
  });

  it('merges projects and statuses by wait, and skips queries that cannot contribute', async () => {
    const { asked, longest } = storeOf([
      ['b', 'RUNNING', 1],
      ['a', 'PENDING', 2],
      ['b', 'PENDING', 3],
      ['a', 'RUNNING', 4],
      ...many('a', 'RUNNING', 9),
      ...many('c', 'RUNNING', 9),
    ]);
    expect((await longest()).map(({ since }) => since)).toEqual([1, 2, 3, 4, 9, 9, 9, 9, 9, 9]);
    expect(asked).toEqual(['b RUNNING', 'a PENDING', 'b PENDING', 'a RUNNING']);
  });
});
