import { describe, expect, it } from 'vitest';
import { limitsOf } from '../../../proof/durations-file.ts';

describe('limitsOf', () => {
  const HEADER = 'project,status,ended_at,seconds';

  async function limitsOfLines(...lines: readonly string[]): Promise<readonly string[]> {
    async function* each(): AsyncGenerator<string> {
      yield* lines;
    }
    const printed: string[] = [];
    for await (const line of limitsOf(each())) printed.push(line);
    return printed;
  }

  /** Lines of twenty prompts of ten minutes at noon of a day of January 1970. */
  function prompts(project: string, day: number): readonly string[] {
    const noon = (day - 1) * 86_400 + 43_200;
    return Array.from({ length: 20 }, (_, index) => `${project},RUNNING,${noon + index},600`);
  }

  it('prints a line for each day from the first duration to the day after the last one', async () => {
    const lines = await limitsOfLines(
      HEADER,
      ...[1, 2, 3, 9].flatMap((day) => prompts('p', day)),
      'p,PENDING,777600.5,30',
    );
    expect(lines.slice(0, 4)).toEqual([
      'project,status,day,limit_seconds',
      'p,RUNNING,1970-01-01,14400',
      'p,RUNNING,1970-01-02,14400',
      'p,RUNNING,1970-01-03,14400',
    ]);
    const days = lines
      .filter((line) => line.startsWith('p,RUNNING'))
      .map((line) => line.split(','));
    expect(days.map(([, , day]) => day?.slice(-2)).join(' ')).toBe('01 02 03 04 05 06 07 08 09 10');
    // The limit is learned a week after the first day, from earlier days only.
    expect(days.map(([, , , limit]) => limit === '14400')).toEqual([
      ...Array<boolean>(7).fill(true),
      false,
      false,
      false,
    ]);
    expect(lines).toContain('p,PENDING,1970-01-10,3600');
    expect(lines).toContain('p,PENDING,1970-01-11,3600');
  });

  it('reads quoted fields and a byte order mark', async () => {
    const lines = await limitsOfLines(`\uFEFF${HEADER}`, '"a, ""b""",RUNNING,"5",30', '');
    expect(lines[1]).toBe('"a, ""b""",RUNNING,1970-01-01,14400');
  });

  it.each([
    ['another header', ['a,b'], /^line 1: is not project,status,ended_at,seconds$/],
    ['no line', [], /^line 1: /],
    ['another number of fields', [HEADER, 'p,RUNNING,1,2', 'p,RUNNING,1'], /^line 3: has 3 fields/],
    ['an unknown status', [HEADER, 'p,FAILED,1,2'], /^line 2: status "FAILED"/],
    ['a time in ms', [HEADER, 'p,RUNNING,1700000000000,2'], /^line 2: ended_at "1700000000000"/],
    ['a negative duration', [HEADER, 'p,RUNNING,1,-2'], /^line 2: seconds "-2"/],
    ['an infinite duration', [HEADER, 'p,RUNNING,1,1e999'], /^line 2: seconds "1e999"/],
    ['no project', [HEADER, ',RUNNING,1,2'], /^line 2: has no project/],
    ['an open quote', [HEADER, '"p,RUNNING,1,2'], /^line 2: has a quote/],
    ['times that are not sorted', [HEADER, 'p,RUNNING,9,2', 'p,RUNNING,8,2'], /^line 3: ended_at/],
  ])('rejects %s', async (_, lines, message) => {
    await expect(limitsOfLines(...lines)).rejects.toThrow(message);
  });
});
