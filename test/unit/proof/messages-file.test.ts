import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { groupFile } from '../../../proof/messages-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('proof of causes with a file of messages', () => {
  async function grouped(lines: string): Promise<{ readonly score: string; readonly out: string }> {
    await using directory = await temporaryDirectory();
    const file = join(directory.path, 'messages.ndjson');
    const out = join(directory.path, 'causes.ndjson');
    await writeFile(file, lines);
    const score = await groupFile(file, out);
    return { score, out: await readFile(out, 'utf8') };
  }

  const message = (template: unknown, error_msg: unknown, error_id: unknown = null): string =>
    `${JSON.stringify({ template, error_id, error_msg })}\n`;

  it('reports accuracy, groups, templates and time per message', async () => {
    const { score } = await grouped(
      message('a', 'took 5 s') + message('a', 'took 7 s') + message('b', 'x') + message('c', 'x'),
    );
    expect(score).toMatch(
      /^grouping accuracy 0\.5000, 2 groups, 3 templates, \d+\.\d µs a message$/,
    );
  });

  it('writes the cause and the shape of every line', async () => {
    const { out } = await grouped(
      message('a', 'took 5 s') + message('a', null, 'E') + message(1, ''),
    );
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(lines).toEqual([
      { cause: expect.stringMatching(/^[0-9a-f]{16}$/), shape: 'took <*>' },
      { cause: expect.stringMatching(/^[0-9a-f]{16}$/), shape: '' },
      { cause: expect.stringMatching(/^[0-9a-f]{16}$/), shape: '' },
    ]);
  });

  it('reads CRLF, blank lines, U+2028 in a message and a last line without a newline', async () => {
    const { out } = await grouped(
      `{"template":"a","error_msg":"a\u2028b"}\r\n\n{"template":"a","error_id":null,"error_msg":"b"}`,
    );
    expect(out.trimEnd().split('\n')).toHaveLength(2);
  });

  it.each([
    ['text that is not JSON', 'x\n', 'line 2: not valid JSON'],
    ['another value', '[1]\n', 'line 2: not a JSON object'],
    ['no template', '{"error_msg":"a"}\n', 'line 2: "template" must be a string or a number'],
    ['another error_msg', message('a', 5), 'line 2: "error_msg" must be a string or null'],
    ['another error_id', message('a', 'a', 5), 'line 2: "error_id" must be a string or null'],
  ])('rejects %s with the line number', async (_, line, reason) => {
    await expect(grouped(message('a', 'a') + line)).rejects.toThrow(reason);
  });

  it('rejects a file without messages', async () => {
    await expect(grouped('\n')).rejects.toThrow('it has no messages');
  });
});
