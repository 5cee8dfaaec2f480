import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { brokenSqlite } from '../support/broken-sqlite.ts';
import { PATIENCE, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { startAlpha } from '../support/service.ts';

const running = { project: 'alpha', status: 'RUNNING' };

it(
  'page, API and scrapes are answered while a large commit keeps the store busy',
  UNHURRIED,
  async () => {
    await using service = await startAlpha();
    service.set({ p0: 'RUNNING' });
    await using place = await workspace(service.url);
    const flag = join(place.directory, 'busy');
    await using daemon = startDaemon(place, {
      args: brokenSqlite(flag, /^INSERT INTO record\b/, 'hang'),
    });
    const url = await daemon.url();
    await daemon.line('project.baseline');

    await writeFile(flag, '');
    service.set(Object.fromEntries(Array.from({ length: 10_500 }, (_, n) => [`p${n}`, 'RUNNING'])));
    await vi.waitFor(() => expect(existsSync(`${flag}.hangs`)).toBe(true), PATIENCE);
    for (const path of ['/', '/projects/alpha', '/api/v1/projects', '/api/v1/transitions']) {
      const answer = await fetch(url + path);
      expect([path, answer.status]).toEqual([path, 200]);
      await answer.text();
    }
    const before = await scrape(url);
    expect(before.value('evalwatch_prompts', running)).toBe(1);
    expect(before.value('evalwatch_error_info_backlog')).toBe(0);

    await rm(flag);
    await vi.waitFor(async () => {
      expect((await scrape(url)).value('evalwatch_prompts', running)).toBe(10_500);
    }, PATIENCE);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expect(existsSync(join(place.directory, 'evalwatch.db-wal'))).toBe(false);
  },
);
