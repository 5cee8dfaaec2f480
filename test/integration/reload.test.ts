import { lstat, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { ask } from '../support/ask.ts';
import { brokenSqlite } from '../support/broken-sqlite.ts';
import { startHere } from '../support/daemon-here.ts';
import {
  KEY,
  ON_REQUEST,
  PATIENCE,
  startDaemon,
  UNHURRIED,
  workspace,
} from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { promptItem, sendJson, startAlpha, startService } from '../support/service.ts';

const BOTH = [{ id: 'alpha' }, { id: 'beta' }];

/** Mounts files as Kubernetes does: they are links into ..data, which is a link that is replaced by renaming. */
async function mount(
  directory: string,
  version: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  await mkdir(join(directory, version));
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(directory, version, name), content);
  }
  await symlink(version, join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
  for (const name of Object.keys(files)) {
    if ((await lstat(join(directory, name))).isSymbolicLink()) continue;
    await rm(join(directory, name));
    await symlink(join('..data', name), join(directory, name));
  }
}

describe('a reload', UNHURRIED, () => {
  it('by SIGHUP adds a project, polls it at once, and leaves the others as they are', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, { schedule: '0 0 1 1 *' });
    await using daemon = startDaemon(place);
    await daemon.line('project.baseline');
    const url = await daemon.url();
    const polls = 'evalwatch_polls_total{project="alpha"}';
    await vi.waitFor(async () => expect((await scrape(url)).value(polls)).toBe(1), PATIENCE);

    await place.configure({ projects: BOTH });
    daemon.process.kill('SIGHUP');
    const line = await daemon.line('config.reloaded');
    expect(line).toMatchObject({ added: ['beta'], removed: [], changed: [], sections: [] });
    await daemon.line('poll.completed', { project: 'beta' });

    const after = await scrape(url);
    expect(after.value(polls)).toBe(1);
    expect(after.value('evalwatch_project_up{project="alpha"}')).toBe(1);
    expect(after.value('evalwatch_project_up{project="beta"}')).toBe(1);
    expect(after.value('evalwatch_config_last_reload_successful')).toBe(1);
  });

  it('removes a project and all its series, and so does a restart', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, { projects: BOTH });
    await using daemon = await startHere(place);
    const url = await daemon.url();
    await daemon.line('project.baseline', { project: 'beta' });

    await place.configure({ projects: [{ id: 'alpha' }] });
    await daemon.reload();
    await daemon.line('config.reloaded');

    await vi.waitFor(async () => {
      const text = await (await fetch(`${url}/metrics`)).text();
      expect(text).not.toContain('beta');
      expect(text).toContain('alpha');
    }, PATIENCE);
    await daemon.stop();
    await using next = await startHere(place);
    expect((await scrape(await next.url())).text).not.toContain('beta');
  });

  it('adds the projects of a new file, and removes those of a lost one only when it says so', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await place.configure({ projects_files: ['projects.d/*.yaml'] });
    const folder = join(dirname(place.config), 'projects.d');
    await mkdir(folder);
    const file = join(folder, 'team.yaml');
    await using daemon = await startHere(place);
    await daemon.line('project.baseline', { project: 'alpha' });

    await writeFile(file, '- id: beta\n');
    await daemon.reload();
    await daemon.line('project.baseline', { project: 'beta' });
    const inForce = await fetch(`${await daemon.url()}/api/v1/config`);
    expect(await inForce.json()).toMatchObject({ projects: [{ id: 'alpha' }, { id: 'beta' }] });

    await rm(file);
    const reason = `${file}: the file is gone, or projects_files no longer names it, and its projects are lost (1): to remove them, first write [] into it, or restart evalwatch`;
    expect(await daemon.reload()).toEqual({ ok: false, reasons: [reason] });
    const up = 'evalwatch_project_up{project="beta"}';
    expect((await scrape(await daemon.url())).value(up)).toBe(1);

    const renamed = join(folder, 'other.yaml');
    await writeFile(renamed, '- id: beta\n');
    expect(await daemon.reload()).toMatchObject({ ok: true });

    await writeFile(renamed, '[]');
    expect(await daemon.reload()).toMatchObject({ ok: true });
    expect((await scrape(await daemon.url())).value(up)).toBeUndefined();
    await rm(renamed);
    expect(await daemon.reload()).toMatchObject({ ok: true });
  });

  it('applies a change of the service section', async () => {
    await using first = await startAlpha();
    await using second = await startAlpha();
    second.set({ elsewhere: 'RUNNING' });
    await using place = await workspace(first.url);
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');

    await place.configure({ service: { base_url: second.url } });
    await daemon.reload();

    const line = await daemon.line('prompt.transition', { prompt_id: 'elsewhere' });
    expect(line).toMatchObject({ from: 'NEW', to: 'RUNNING' });
  });

  it('without a change uses new connections, and keeps what it knows of listings', async () => {
    await using service = await startService(({ headers }, response) => {
      response.setHeader('etag', '"1"');
      if (headers['if-none-match'] === '"1"') response.writeHead(304).end();
      else sendJson(response, []);
    });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    await vi.waitFor(() => expect(service.arrivals.length).toBeGreaterThan(2), PATIENCE);
    await daemon.reload();
    const { length } = service.arrivals;
    await vi.waitFor(() => expect(service.arrivals.length).toBeGreaterThan(length + 2), PATIENCE);
    await daemon.stop();

    const ports = service.arrivals.map(({ port }) => port);
    expect(new Set(ports).size).toBe(2);
    expect(new Set(ports.slice(length + 1)).size).toBe(1);
    const tags = service.arrivals.map(({ headers }) => headers['if-none-match']);
    expect(new Set(tags.slice(1))).toEqual(new Set(['"1"']));
  });

  it('of an invalid file changes nothing and reports every error', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, { web: { enable_lifecycle: true } });
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    const url = await daemon.url();
    const good = await readFile(place.config, 'utf8');
    await writeFile(
      place.config,
      good.replace('"alpha"', '"."').replace('"schedule"', '"scheduel"'),
    );

    const answer = await fetch(`${url}/-/reload`, { method: 'POST' });

    expect(answer.status).toBe(500);
    const { error } = (await answer.json()) as { error: string };
    expect(error).toContain('scheduel');
    expect(error.split('\n').length).toBeGreaterThan(1);
    const line = await daemon.line('config.reload_failed');
    expect(line.level).toBe('error');
    const seen = await scrape(url);
    expect(seen.value('evalwatch_config_last_reload_successful')).toBe(0);
    expect(seen.value('evalwatch_project_up{project="alpha"}')).toBe(1);
  });

  it('over HTTP needs web.enable_lifecycle, and names an option that only a restart applies', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    const url = await daemon.url();
    const reload = async () => {
      const answer = await fetch(`${url}/-/reload`, { method: 'POST' });
      return [answer.status, await answer.text()];
    };
    expect(await reload()).toMatchObject([403, {}]);
    await place.configure({ web: { enable_lifecycle: true } });
    await daemon.reload();
    expect(await reload()).toMatchObject([200, {}]);

    const before = JSON.parse(await readFile(place.config, 'utf8')) as { web: object };
    for (const [name, change] of [
      ['store', { store: { path: 'other.db' } }],
      ['web.listen', { web: { ...before.web, listen: '127.0.0.1:1' } }],
      ['web.config_file', { web: { ...before.web, config_file: 'web.yaml' } }],
    ] as const) {
      await writeFile(place.config, JSON.stringify({ ...before, ...change }));
      expect(await reload()).toEqual([500, expect.stringContaining(name)]);
    }
  });

  it('keeps a running poll, due times, counters and histograms', async () => {
    const released = Promise.withResolvers<void>();
    const moves = ['RUNNING', 'COMPLETED'];
    await using service = await startService(async ({ project }, response) => {
      if (project === 'alpha') await released.promise;
      const status = project === 'beta' ? (moves.shift() ?? 'COMPLETED') : 'RUNNING';
      sendJson(response, [promptItem('p', status)]);
    });
    const beta = { id: 'beta', schedule: '* * * * * *' };
    await using place = await workspace(service.url, {
      service: { timeout: '10m' },
      schedule: '0 0 1 1 *',
      projects: [{ id: 'alpha' }, beta],
    });
    await using daemon = await startHere(place);
    await daemon.line('prompt.transition', { project: 'beta', to: 'COMPLETED' });
    const url = await daemon.url();
    const series = [
      'evalwatch_prompt_state_duration_seconds_count{project="beta",status="RUNNING"}',
      'evalwatch_project_next_poll_timestamp_seconds{project="alpha"}',
      'evalwatch_polls_total{project="alpha"}',
    ];
    const seen = async () => {
      const seenNow = await scrape(url);
      return series.map((each) => seenNow.value(each));
    };
    const before = await seen();
    expect(before).toEqual([1, expect.any(Number), 0]);
    const polls = (await scrape(url)).value('evalwatch_polls_total{project="beta"}') ?? 0;

    await place.configure({
      service: { timeout: '9m', max_concurrency: 4 },
      projects: [{ id: 'alpha' }, { ...beta, schedule: '*/1 * * * * *' }, { id: 'gamma' }],
    });
    await daemon.reload();
    await daemon.line('config.reloaded');
    expect(await seen()).toEqual(before);
    released.resolve();
    await daemon.line('project.baseline', { project: 'alpha' });
    await daemon.line('project.baseline', { project: 'gamma' });

    expect(service.of('alpha')).toHaveLength(1);
    expect(await seen()).toEqual([...before.slice(0, 2), 1]);
    const after = (await scrape(url)).value('evalwatch_polls_total{project="beta"}');
    expect(after).toBeGreaterThanOrEqual(polls);
    expect(daemon.of('poll.failed')).toEqual([]);
  });

  it('reads a file behind a swapped symlink, and a swapped key needs no reload', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    const { directory } = place;
    const config = await readFile(place.config, 'utf8');
    await mount(directory, '..v1', { 'evalwatch.yaml': config, key: KEY });
    await using daemon = await startHere(place);
    await daemon.line('project.baseline', { project: 'alpha' });

    const changed = { ...(JSON.parse(config) as object), projects: BOTH };
    const key = 'the-key-of-version-2';
    await mount(directory, '..v2', { 'evalwatch.yaml': JSON.stringify(changed), key });
    await vi.waitFor(
      () => expect(service.arrivals.at(-1)?.headers['x-api-key']).toBe(key),
      PATIENCE,
    );
    expect(daemon.of('config.reloaded')).toEqual([]);
    await daemon.reload();
    await daemon.line('project.baseline', { project: 'beta' });
  });

  it('applies a change of web.allowed_hosts', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, { web: { enable_lifecycle: true } });
    await using daemon = await startHere(place);
    const url = await daemon.url();
    const byName = () =>
      ask(`${url}/api/v1/projects`, { headers: { host: 'evalwatch.example.com' } });
    const before = await byName();

    await place.configure({ web: { allowed_hosts: ['Evalwatch.Example.com'] } });
    const reloaded = await fetch(`${url}/-/reload`, { method: 'POST' });

    expect([before.status, reloaded.status, (await byName()).status]).toEqual([421, 200, 200]);
  });

  it('applies changes of expectations and team to metrics, API and page', async () => {
    await using service = await startAlpha();
    service.set({ p: 'RUNNING' });
    await using place = await workspace(service.url, {
      schedule: '0 0 1 1 *',
      expect: { max_running: '2h' },
      projects: [{ id: 'alpha', team: 'search', expect: { max_pending: 'off' } }],
    });
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    const url = await daemon.url();
    const shown = async () => {
      const json = async (path: string) =>
        ((await (await fetch(`${url}/api/v1/${path}`)).json()) as { data: object[] }).data;
      const page = await (await fetch(`${url}/projects/alpha`)).text();
      const words = page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
      const { samples } = await scrape(url);
      return {
        limits: ['PENDING', 'RUNNING'].map((status) =>
          samples.get(`evalwatch_prompt_state_limit_seconds{project="alpha",status="${status}"}`),
        ),
        objective: samples.get('evalwatch_project_max_failure_ratio{project="alpha"}'),
        teams: [...samples.keys()].filter((name) => name.startsWith('evalwatch_project_info')),
        project: (await json('projects'))[0],
        prompt: (await json('prompts'))[0],
        page: /What is expected (.*?) A limit/.exec(words)?.[1],
      };
    };

    await vi.waitFor(
      async () =>
        expect(await shown()).toMatchObject({
          limits: [undefined, 7200],
          objective: 0.2,
          teams: ['evalwatch_project_info{project="alpha",team="search"}'],
          project: {
            team: 'search',
            expectations: {
              PENDING: { limit_seconds: null, limit_source: 'off' },
              RUNNING: { limit_seconds: 7200, limit_source: 'configured' },
            },
            max_failure_ratio: 0.2,
          },
          prompt: { prompt_id: 'p', limit_seconds: 7200, limit_source: 'configured' },
          page: 'Team search PENDING no limit RUNNING limit 2 h (configured) Objective at most 20 % of finished prompts may fail',
        }),
      PATIENCE,
    );

    await place.configure({
      expect: { max_running: '1500ms', max_failure_ratio: 'off' },
      projects: [{ id: 'alpha', team: 'risk' }],
    });
    await daemon.reload();
    await daemon.line('config.reloaded');

    const { page: _page, ...now } = await shown();
    expect(now).toMatchObject({
      limits: [3600, 1.5],
      objective: undefined,
      teams: ['evalwatch_project_info{project="alpha",team="risk"}'],
      project: {
        team: 'risk',
        expectations: {
          PENDING: { limit_seconds: 3600, limit_source: 'default' },
          RUNNING: { limit_seconds: 1.5, limit_source: 'configured' },
        },
        max_failure_ratio: null,
      },
      prompt: { limit_seconds: 1.5, limit_source: 'configured' },
    });
    // A page is cached for a second.
    await vi.waitFor(
      async () =>
        expect((await shown()).page).toBe(
          'Team risk PENDING limit 1 h (default) RUNNING limit 1 s (configured) Objective none',
        ),
      { ...PATIENCE, interval: 500 },
    );
  });

  it('fails and removes no project if the store cannot be read', async () => {
    await using service = await startAlpha();
    const gamma = { id: 'gamma' };
    await using place = await workspace(service.url, { projects: [...BOTH, gamma] });
    const flag = join(place.directory, 'unreadable');
    await using daemon = startDaemon(place, {
      args: brokenSqlite(flag, /^SELECT p\.up, .* FROM project p WHERE p\.id = /, 'I/O error'),
    });
    await daemon.line('project.baseline', { project: 'gamma' });
    const reload = async (projects: readonly object[], outcome: string) => {
      const before = daemon.lines.length;
      await place.configure({ projects });
      daemon.process.kill('SIGHUP');
      await daemon.line(outcome, {}, before);
    };
    // When gamma comes back, its poll health is read from the store.
    await reload(BOTH, 'config.reloaded');
    await writeFile(flag, '');
    const next = [{ id: 'alpha' }, gamma];
    await reload(next, 'config.reload_failed');

    const { samples } = await scrape(await daemon.url());
    const configured = ['alpha', 'beta', 'gamma'].filter((id) =>
      samples.has(`evalwatch_project_configured_timestamp_seconds{project="${id}"}`),
    );
    expect(configured).toEqual(['alpha', 'beta']);
    await rm(flag);
    await reload(next, 'config.reloaded');
  });
});

describe('a daemon that watches its configuration', UNHURRIED, () => {
  /** It looks every 40 ms. */
  const WATCHING = { watchConfig: true, speed: 50 };

  it('applies a file that is written in place or replaced by a rename, and reports an invalid one', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, ON_REQUEST);
    await using daemon = await startHere(place, WATCHING);
    await daemon.line('project.baseline', { project: 'alpha' });
    const url = await daemon.url();

    await place.configure({ projects: BOTH });
    const first = await daemon.line('config.reloaded');
    expect(first).toMatchObject({ level: 'info', added: ['beta'], removed: [], changed: [] });
    await daemon.line('project.baseline', { project: 'beta' });

    await place.configure({ projects: [{ id: '.' }] });
    const line = await daemon.line('config.reload_failed');
    expect(line).toMatchObject({ level: 'error', reasons: [expect.stringContaining('projects')] });
    const after = await scrape(url);
    expect(after.value('evalwatch_config_last_reload_successful')).toBe(0);
    expect(after.value('evalwatch_project_up{project="alpha"}')).toBe(1);

    const before = daemon.lines.length;
    const draft = join(place.directory, '.evalwatch.yaml.swp');
    const text = await readFile(place.config, 'utf8');
    await writeFile(draft, text.replace('{"id":"."}', '{"id":"alpha"}'));
    await rename(draft, place.config);
    expect(await daemon.line('config.reloaded', {}, before)).toMatchObject({ removed: ['beta'] });
    expect((await scrape(url)).value('evalwatch_config_last_reload_successful')).toBe(1);
  });

  it('applies the swapped symlink of a ConfigMap', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, ON_REQUEST);
    const config = await readFile(place.config, 'utf8');
    await mount(place.directory, '..v1', { 'evalwatch.yaml': config });
    await using daemon = await startHere(place, WATCHING);
    await daemon.line('project.baseline', { project: 'alpha' });

    const changed = { ...(JSON.parse(config) as object), projects: BOTH };
    await mount(place.directory, '..v2', { 'evalwatch.yaml': JSON.stringify(changed) });
    await daemon.line('project.baseline', { project: 'beta' });
    expect(daemon.of('config.reload_failed')).toEqual([]);
  });
});
