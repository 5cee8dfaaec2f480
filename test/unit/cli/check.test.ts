import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { World } from '../../../src/simulator/world.ts';
import { startWorld } from '../../support/service.ts';
import { commandLine, evalwatch } from '../../support/command-line.ts';
import { temporaryDirectory, writeConfiguration } from './configuration-file.ts';

describe('check', () => {
  it('prints the next 5 runs of each project in its time zone with --verbose', async () => {
    const config = writeConfiguration(temporaryDirectory(), [
      { id: 'nightly', schedule: '0 3 * * *', timezone: 'Asia/Kolkata' },
      { id: 'often', schedule: '*/10 * * * * *' },
    ]);
    const args = ['check', '--config', config];
    const { code, stdout, stderr } = await commandLine([...args, '--verbose']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^(?:warning: the limit for \w+ is shorter .*"nightly".*\n){2}$/);
    const lines = stdout.trimEnd().split('\n').slice(2, -2);
    expect(lines).toHaveLength(15);
    expect(lines[0]).toMatch(/^project +schedule +timezone +requests_per_day +next_runs$/);
    expect(lines[1]).toMatch(
      /^nightly +0 3 \* \* \* +Asia\/Kolkata +1 +\d{4}-\d\d-\d\dT03:00:00\+05:30$/,
    );
    expect(lines[2]).toMatch(/^ +\d{4}-\d\d-\d\dT03:00:00\+05:30$/);
    expect(lines[6]).toMatch(/^often +\*\/10 \* \* \* \* \* +UTC +8640 +\S+:\d0\+00:00$/);
    expect(lines[11]).toBe('');
    const { stdout: short } = await commandLine(args);
    expect(short).not.toMatch(/next_runs|T03:00:00/);
  });

  it('names its file first, and at the end the command that starts the daemon', async () => {
    const directory = join(temporaryDirectory(), "it's");
    mkdirSync(directory);
    const config = writeConfiguration(directory, [{ id: 'a' }]);
    vi.stubEnv('EVALWATCH_CONFIG', config);
    onTestFinished(() => void vi.unstubAllEnvs());
    const [named, standing] = [
      await commandLine(['check', '--config', config]),
      await commandLine(['check']),
    ];
    const quoted = config.replace("'", `'\\''`);
    for (const [{ stdout }, how, option] of [
      [named, '', ` --config '${quoted}'`],
      [standing, ' (EVALWATCH_CONFIG)', ''],
    ] as const) {
      const lines = stdout.trimEnd().split('\n');
      expect(lines[0]).toBe(`Configuration: ${config}${how}`);
      const start = `evalwatch run${option} --watch-config`;
      expect(lines.at(-1)).toBe(`OK. This command starts the daemon: ${start}`);
    }
  });

  it('names the projects files and the number of their projects', async () => {
    const directory = temporaryDirectory();
    const files = { projects_files: ['*.list.json'] };
    const config = writeConfiguration(directory, [{ id: 'own' }], files);
    writeFileSync(join(directory, 'b.list.json'), '[{"id": "b"}, {"id": "c"}]');
    const { stdout } = await commandLine(['check', '--config', config]);
    const shown = stdout.split('\n').slice(0, 7);
    expect(shown.slice(0, 3)).toEqual([
      `Configuration: ${config}`,
      `Projects file: ${join(directory, 'b.list.json')} (2)`,
      '',
    ]);
    expect(shown.slice(4).map((line) => line.split(' ')[0])).toEqual(['own', 'b', 'c']);
  });

  it('prints the configuration in force with --print, and nothing else', async () => {
    const config = writeConfiguration(temporaryDirectory(), [{ id: 'a' }]);
    const { code, stdout, stderr } = await commandLine(['check', '--config', config, '--print']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      service: { base_url: 'https://evaluation.example.org', retries: 3 },
      projects: [{ id: 'a', schedule: '*/30 * * * * *' }],
    });
  });

  it('prints how many requests a day a project makes, also while it is idle', async () => {
    const config = writeConfiguration(temporaryDirectory(), [
      { id: 'often', datasets: true, idle_schedule: '*/15 * * * *' },
      { id: 'workdays', schedule: '0 9-16 * * 1-5' },
    ]);
    const { stdout } = await commandLine(['check', '--config', config]);
    expect(stdout).toMatch(/^often +\*\/30 \* \* \* \* \* +UTC +5760$/m);
    expect(stdout).toMatch(/^workdays +0 9-16 \* \* 1-5 +UTC +6$/m);
    expect(stdout).toMatch(
      /^project +idle_schedule +requests_per_day\noften +\*\/15 \* \* \* \* +192\n\n/m,
    );
  });

  it('prints the pause that lasts and the next one', async () => {
    const config = writeConfiguration(temporaryDirectory(), [
      { id: 'polled' },
      { id: 'paused', paused: true },
      {
        id: 'weekend',
        timezone: 'Asia/Kolkata',
        maintenance: [
          { cron: '0 3 29 2 *', duration: '2h', polls: 'continue' },
          { cron: '0 5 29 2 *', duration: '1h' },
        ],
      },
    ]);
    const { stdout } = await commandLine(['check', '--config', config]);
    expect(stdout).toMatch(
      /^project +paused_from +paused_until +polls\npaused +now +- +stop\nweekend +\d{4}-02-29T03:00:00\+05:30 +\d{4}-02-29T05:00:00\+05:30 +continue\n\n/m,
    );
    const { stdout: json } = await commandLine(['check', '--config', config, '--json']);
    expect(JSON.parse(json)).toMatchObject([
      { pause: null },
      { pause: { from: null, until: null, polls: 'stop' } },
      {
        pause: {
          from: expect.stringContaining('-02-28T21:30:00.000Z') as string,
          until: expect.stringContaining('-02-28T23:30:00.000Z') as string,
          polls: 'continue',
        },
      },
    ]);
  });

  it('prints the team and the configured expectations of each project', async () => {
    const projects = [
      { id: 'plain' },
      { id: 'own', team: 'search', expect: { max_running: '90m', max_failure_ratio: 0.05 } },
    ];
    const more: object = { expect: { max_pending: 'off', max_failure_ratio: 'off' } };
    const config = writeConfiguration(temporaryDirectory(), projects, more);
    const { stdout } = await commandLine(['check', '--config', config]);
    const table = stdout.trimEnd().split('\n').slice(-5, -2);
    expect(table.map((line) => line.split(/ {2,}/))).toEqual([
      ['project', 'team', 'max_pending', 'max_running', 'max_failure_ratio'],
      ['plain', '-', 'off', 'auto (4h at first)', 'off'],
      ['own', 'search', 'off', '1h30m', '0.05'],
    ]);
    const { stdout: json } = await commandLine(['check', '--config', config, '--json']);
    expect(JSON.parse(json)).toMatchObject([
      { team: null, expect: { max_pending: 'off', max_running: 'auto', max_failure_ratio: 'off' } },
      { team: 'search', expect: { max_running: '1h30m', max_failure_ratio: 0.05 } },
    ]);
  });

  it('prints one JSON document with times in UTC', async () => {
    const config = writeConfiguration(temporaryDirectory(), [
      { id: 'nightly', schedule: '0 3 * * *', timezone: 'Asia/Kolkata' },
    ]);
    const { code, stdout } = await commandLine(['check', '--config', config, '--json']);
    expect(code).toBe(0);
    const [row, ...others]: Record<string, unknown>[] = JSON.parse(stdout);
    expect(others).toEqual([]);
    expect(row).toEqual({
      project: 'nightly',
      schedule: '0 3 * * *',
      timezone: 'Asia/Kolkata',
      next_runs: Array.from({ length: 5 }, () => expect.stringMatching(/T21:30:00\.000Z$/)),
      requests_per_day: 1,
      idle_schedule: null,
      idle_requests_per_day: null,
      pause: null,
      team: null,
      expect: { max_pending: 'auto', max_running: 'auto', max_failure_ratio: 0.2 },
    });
    const runs = row?.['next_runs'] as string[];
    expect(runs).toEqual([...new Set(runs)].toSorted());
    expect(Date.parse(runs[0] ?? '')).toBeGreaterThan(Date.now() - 1000);
  });

  const bad = 'service: {base_url: https://x.example, api_key_file: key}\nprojects:\n  - idd: a\n';

  it('prints every error of an invalid file with its line and column', async () => {
    const file = join(temporaryDirectory(), 'bad.yaml');
    writeFileSync(file, bad);
    const { code, stdout, stderr } = await commandLine(['check', '--config', file]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`${file}:3:5: unknown key "idd", did you mean "id"?\n`);
    expect(stderr.trimEnd().split('\n').length).toBeGreaterThan(1);
  });

  it('prints the errors of an invalid file as one JSON document with --json', async () => {
    const file = join(temporaryDirectory(), 'bad.yaml');
    writeFileSync(file, bad);
    const { code, stdout, stderr } = await commandLine(['check', '--config', file, '--json']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      errors: expect.arrayContaining([
        { file, line: 3, column: 5, message: 'unknown key "idd", did you mean "id"?' },
      ]) as unknown,
    });
  });

  it('uses config/evalwatch.yaml without --config and EVALWATCH_CONFIG, and says so', async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'config'));
    writeConfiguration(join(directory, 'config'), [{ id: 'a' }]);
    const { stdout } = await evalwatch(['check'], { cwd: directory });
    expect(stdout).toMatch(
      /^Configuration: .*\/config\/evalwatch\.yaml \(neither --config nor EVALWATCH_CONFIG /,
    );
  });
});

describe('check of a valid configuration', () => {
  async function findings(
    projects: readonly object[],
    more?: object,
    env: Readonly<Record<string, string | undefined>> = {},
  ) {
    const directory = temporaryDirectory();
    const config = writeConfiguration(directory, projects, more);
    writeFileSync(join(directory, 'empty'), ' \n');
    writeFileSync(join(directory, 'short'), 'secret-of-15-ch\n');
    writeFileSync(join(directory, 'tiny'), 'tiny-7c');
    writeFileSync(join(directory, 'quoted'), '"the-secret-of-a-key"');
    writeFileSync(join(directory, 'bearer'), 'Bearer the-secret-of-a-key');
    writeFileSync(join(directory, 'header'), 'X-API-Key: the-secret-of-a-key\n');
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { code, stdout, stderr } = await commandLine(['check', '--config', config, '--json']);
    expect(code).toBe(/^error: /m.test(stderr) ? 1 : 0);
    expect(JSON.parse(stdout)).toHaveLength(projects.length);
    return stderr;
  }

  it.each([
    ['a key file that is missing', { api_key_file: 'missing' }, /^error: project "a": .*missing/],
    ['an empty key file', { api_key_file: 'empty' }, /^error: project "a": .*empty/],
    [
      'a variable that is not set',
      { api_key_env: 'THE_KEY' },
      /^warning: project "a": the environment variable that api_key_env names is not set/m,
    ],
    ['an unusable key', { api_key_file: 'tiny' }, /^error: project "a": .*fewer than 8/],
    ['a short key', { api_key_file: 'short' }, /^warning: project "a": .*fewer than 16/],
    ['a key in quotes', { api_key_file: 'quoted' }, /^warning: project "a": .*quotes around it/],
    ['a key behind Bearer', { api_key_file: 'bearer' }, /^warning: .*begins with Bearer, /],
    ['a key with its header', { api_key_file: 'header' }, /^warning: .*begins with X-API-Key, /],
  ])('reports %s, and exits 1 after an error', async (_, key, finding) => {
    const stderr = await findings([{ id: 'a', ...key }]);
    expect(stderr).toMatch(finding);
    expect(stderr).not.toMatch(/secret-of|tiny-7c/);
  });

  it('warns about a base_url that ends in the version that evalwatch adds', async () => {
    const service = { base_url: 'https://evaluation.example.com/v2/' };
    expect(await findings([{ id: 'a' }], { service })).toMatch(
      /^warning: service\.base_url ends in \/v2.* https:\/\/evaluation\.example\.com\/v2\/v2\/projects\/…; remove /,
    );
  });

  it('names the limits of a project that are shorter than the time between two polls', async () => {
    const fast = { schedule: '*/30 * * * * *', expect: { max_running: '30s' } };
    const projects = [
      { id: 'daily', schedule: '0 9 * * *', expect: { max_running: '5m' } },
      { id: 'patient', schedule: '0 9 * * *', expect: { max_pending: 'off', max_running: '24h' } },
      { id: 'fast', ...fast },
      { id: 'hourly', schedule: '0 * * * *' },
    ];
    const warning = (status: string, option: string, limit: string) =>
      `warning: the limit for ${status} is shorter than the time between two polls: "daily" (${limit}, polled every 1d); prompts will seem stuck: set expect.${option} of the project to more, or to off\n`;
    expect(await findings(projects)).toBe(
      warning('PENDING', 'max_pending', '1h') + warning('RUNNING', 'max_running', '5m'),
    );
    const many = Array.from({ length: 5 }, (_, n) => {
      return { id: `p${n}`, schedule: '0 */2 * * *', expect: { max_running: 'off' } };
    });
    expect(await findings(many)).toMatch(
      /^[^\n]*"p2" \(1h, polled every 2h\) and 2 more;[^\n]*\n$/,
    );
  });

  it('reports once a missing key that several projects use', async () => {
    const stderr = await findings([{ id: 'a' }, { id: 'b' }, { id: 'c' }], {
      service: { api_key_file: 'missing' },
    });
    expect(stderr).toMatch(/^error: project "a" and 2 more: [^\n]+\n$/);
  });

  it('prints no variable name that could be the key itself', async () => {
    const stderr = await findings([{ id: 'a', api_key_env: 'sk_live_abcdef' }]);
    expect(stderr).toMatch(
      /^warning: project "a": the environment variable that api_key_env names is not set/,
    );
    expect(stderr).not.toContain('sk_live');
  });

  it.each([
    'sk-live-0123456789abcdef',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyLTQyIn0.c2lnbmF0dXJlLW9mLXRlc3Q',
    'k9/fG3x+Lq81Zt0pVbN4wY7u=',
    'correct-horse-battery-staple',
    'x'.repeat(300),
  ])('prints no path of a key file that could be the key itself: %s', async (key) => {
    const stderr = await findings([{ id: 'a', api_key_file: key }]);
    expect(stderr).toMatch(
      /^error: project "a": the key file .* its path is not shown because it /,
    );
    expect(stderr).not.toContain(key.slice(0, 8));
  });

  it.each(['/run/secrets/evaluation_api_key', 'keys/chat', 'evaluation.key', 'no-key'])(
    'names a missing key file whose path is no key: %s',
    async (path) => {
      expect(await findings([{ id: 'a', api_key_file: path }])).toContain(`${path} cannot be read`);
    },
  );

  it.each([
    [
      'mysql://eva:5ecret@db',
      /^error: store\.postgres_url_env: the address must start with postgres:\/\/ or /,
    ],
    [
      'postgres://eva:5ecret@db/evalwatch?tls=yes',
      /has a parameter that is not one of host, port, /,
    ],
    ['postgres://eva:5ecret/@db/evalwatch', /percent-encode .* in names and passwords$/m],
  ])(
    'reports an invalid database URL without printing any part of it: %s',
    async (url, warning) => {
      const store = { postgres_url_env: 'DATABASE_URL' };
      const stderr = await findings([{ id: 'a' }], { store }, { DATABASE_URL: url });
      expect(stderr).toMatch(warning);
      expect(stderr).not.toMatch(/5ecret|eva:|@db/);
    },
  );

  it.each([
    ['hc-ping.com/5ecret', /heartbeat: the address must start with http/],
    ['https://hc-ping.com/5ecret', /^$/],
  ])('checks the heartbeat URL without printing any part of it: %s', async (url, warning) => {
    const file = join(temporaryDirectory(), 'heartbeat');
    writeFileSync(file, url);
    const stderr = await findings([{ id: 'a' }], { heartbeat: { url_file: file } });
    expect(stderr).toMatch(warning);
    expect(stderr).not.toMatch(/5ecret|hc-ping/);
  });
});

describe('check --connect', () => {
  const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'];

  async function setUp() {
    const projects = ['alpha', 'beta'];
    const world = new World(projects);
    for (const project of projects) {
      for (const status of STATUSES) {
        for (let n = 0; n < 5; n += 1) world.addPrompt(project, { status });
      }
    }
    const service = await startWorld(world, new Map([['k'.repeat(20), undefined]]));
    const directory = temporaryDirectory();
    const check = (ids: readonly string[], ...args: string[]) => {
      const config = writeConfiguration(
        directory,
        ids.map((id) => ({ id })),
        { service: { base_url: service.url } },
      );
      return commandLine(['check', '--connect', '--config', config, ...args]);
    };
    return {
      check,
      directory,
      arrivals: service.arrivals,
      [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
    };
  }

  it('requests the prompts of each project once, counts them, and creates no store', async () => {
    await using place = await setUp();
    const { code, stdout } = await place.check(['alpha', 'beta'], '--json');
    expect(code).toBe(0);
    const rows: readonly { readonly connection: Record<string, unknown> }[] = JSON.parse(stdout);
    expect(rows).toHaveLength(2);
    for (const { connection } of rows) {
      expect(connection).toMatchObject({ reason: null, status_code: null, unexpected_items: 0 });
      const counts = Object.values(connection['prompts'] as Record<string, number>);
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20);
      expect(connection['bytes']).toBeGreaterThan(1000);
      expect(connection['duration_ms']).toBeGreaterThan(0);
    }
    const listings = place.arrivals.filter(({ project }) => project !== undefined);
    expect(listings.map(({ path }) => path).toSorted()).toEqual([
      '/v2/projects/alpha/prompts/',
      '/v2/projects/beta/prompts/',
    ]);
    expect(readdirSync(place.directory).filter((name) => name.includes('.db'))).toEqual([]);
  });

  it('exits 1 and prints the cause and the fix if a project cannot be listed', async () => {
    await using place = await setUp();
    const { code, stdout, stderr } = await place.check(['alpha', 'gamma']);
    expect(code).toBe(1);
    const table = stdout.trimEnd().split('\n').slice(-2);
    expect(table.map((line) => line.split(/ {2,}/).slice(0, 4))).toEqual([
      ['alpha', 'ok', '-', '-'],
      ['gamma', 'not_found', 'list_prompts', '404'],
    ]);
    expect(stderr).toMatch(
      /error: project "gamma" cannot be listed: .*404.*.*GET http.*\/v2\/projects\/gamma\/prompts\/.*Check the id of the project/,
    );

    const config = join(place.directory, 'evalwatch.yaml');
    writeFileSync(join(place.directory, 'key'), 'another key for the tests');
    const refused = await commandLine(['check', '--connect', '--config', config]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/error: project "alpha" .*401.*Check the API key/);
    expect(refused.stderr + refused.stdout).not.toContain('another key');
  });

  /** Checks the project `p` at a service that answers each path with this body, or by this function. */
  async function checkAt(
    answers: Readonly<Record<string, string | ((response: ServerResponse) => void)>>,
    ...args: string[]
  ) {
    const server = createServer((request, response) => {
      const answer = answers[request.url ?? ''];
      if (typeof answer === 'string') response.end(answer);
      else if (answer === undefined) response.writeHead(404).end();
      else answer(response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const service = { base_url: `http://127.0.0.1:${port}` };
    const directory = temporaryDirectory();
    const config = writeConfiguration(directory, [{ id: 'p', datasets: true }], { service });
    return await commandLine(['check', '--connect', '--config', config, ...args]);
  }

  const PROMPTS = '/v2/projects/p/prompts/';
  const DATASETS = '/v2/projects/p/datasets/';
  const DETAIL = '/v2/prompts/b%2F1/';
  const listing = '[{"id":"a","status":"RUNNING"},{"id":"b/1","status":"FAILED"}]';

  it.each([
    ['prompts', {}, 'list_prompts', null, 'error: project "p" cannot be listed: '],
    [
      'datasets',
      { [PROMPTS]: listing },
      'list_datasets',
      1,
      'error: project "p": its datasets cannot be listed: ',
    ],
    [
      'the details of a FAILED prompt',
      { [PROMPTS]: listing, [DATASETS]: '[]' },
      'get_prompt',
      1,
      'error: project "p": the details of a FAILED prompt cannot be read: ',
    ],
  ])(
    'tries every request of the daemon and names the one that fails: %s',
    async (_, answers, endpoint, failed, error) => {
      const { code, stdout, stderr } = await checkAt(answers, '--json');
      expect(code).toBe(1);
      const [{ connection }] = JSON.parse(stdout);
      expect(connection).toMatchObject({ endpoint, reason: 'not_found', status_code: 404 });
      expect(connection.prompts?.FAILED ?? null).toBe(failed);
      expect(stderr).toContain(error);
    },
  );

  it('names the target of a redirect, and says if it looks like a page to log in', async () => {
    const to = (location: string) => ({
      [PROMPTS]: (response: ServerResponse) => void response.writeHead(302, { location }).end(),
    });
    const login = 'https://sso.example.com/login?to=x';
    const { stdout } = await checkAt(to(login), '--json');
    expect(JSON.parse(stdout)).toMatchObject([
      { connection: { reason: 'redirect', location: login } },
    ]);
    expect((await checkAt(to(login))).stderr).toMatch(
      /redirects to "https:\/\/sso\.example\.com\/login\?to=x".*looks like a page to log in/,
    );
    expect((await checkAt(to('/elsewhere/'))).stderr).toMatch(
      /redirects to "\/elsewhere\/".*Set base_url to the address that the service redirects to/,
    );
  });

  it('says of a listing that is too large what it may have, and that no option raises the size of an item', async () => {
    const item = JSON.stringify({ id: 'a', status: 'RUNNING', text: 'x'.repeat(2 ** 20) });
    expect((await checkAt({ [PROMPTS]: `[${item}]` })).stderr).toMatch(
      /item 0 of the listing is larger than 1048576 bytes .*Raise max_response_size or max_items; one item, or the details of a prompt, may have at most 1 MiB/,
    );
  });

  it('warns of further pages, of which only the first is read', async () => {
    const answers = {
      [PROMPTS]: (response: ServerResponse) => {
        response.setHeader('link', '</p?page=1>; rel="prev", </p?page=2>; rel="next"');
        response.end(listing);
      },
      [DATASETS]: '[]',
      [DETAIL]: '{}',
    };
    const { code, stderr } = await checkAt(answers);
    expect(code).toBe(0);
    expect(stderr).toContain(
      'warning: the service has further pages of the prompts of project "p"',
    );
    expect(JSON.parse((await checkAt(answers, '--json')).stdout)).toMatchObject([
      { connection: { endpoint: null, paged: ['prompt'] } },
    ]);
  });
});
