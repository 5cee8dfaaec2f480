import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { toSource } from '../../../src/config/load.ts';
import { isFor } from '../../../src/domain/receiver.ts';
import { OPTIONS } from '../../../src/config/schema.ts';
import { errorOf, load, loadText, minimal, places, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();

describe('a configuration file', () => {
  it('has defaults for everything except base_url, a key source and a project', async () => {
    const text = minimal();
    expect(await loadText(directory, text)).toEqual({
      file: join(directory, 'evalwatch.yaml'),
      sources: [toSource(join(directory, 'evalwatch.yaml'), text)],
      projectsFiles: [],
      service: {
        baseUrl: 'https://evaluation.example.com',
        timeoutMs: 10_000,
        retries: 3,
        maxConcurrency: 8,
        maxRequestsPerSecond: 10,
        maxResponseBytes: 67_108_864,
        maxItems: 1_000_000,
        authorities: undefined,
        proxyUrl: undefined,
      },
      promptUrl: undefined,
      jitterMs: 0,
      missingAfter: 3,
      projects: [
        {
          id: 'checkout-bot',
          schedule: '*/30 * * * * *',
          timezone: 'UTC',
          key: { file: join(directory, 'key') },
          datasets: false,
          pauses: { isPaused: false, maintenance: [] },
          team: '',
          expect: { limits: { PENDING: 'auto', RUNNING: 'auto' }, maxFailureRatio: 0.2 },
        },
      ],
      store: { path: join(directory, 'data/evalwatch.db'), retentionMs: 7_776_000_000 },
      web: {
        host: '127.0.0.1',
        port: 10_570,
        allowedHosts: [],
        externalUrl: undefined,
        enableLifecycle: false,
        configFile: undefined,
      },
      metrics: { experiments: 0 },
      log: { level: 'info' },
      heartbeat: undefined,
      notify: [],
    });
  });

  it('has defaults for an empty section', async () => {
    const text = minimal({ top: 'store:\nweb:\nmetrics:\nlog:' });
    const { sources: _, ...whole } = await loadText(directory, minimal());
    expect(await loadText(directory, text)).toMatchObject(whole);
  });

  it('may share values by anchors and aliases', async () => {
    const projects = Array.from({ length: 1000 }, (_, n) => `  - { id: p${n}, schedule: *often }`);
    const { projects: loaded } = await loadText(
      directory,
      `service: { base_url: https://evaluation.example.com, api_key_file: key }
schedule: &often "*/5 * * * * *"
projects:
${projects.join('\n')}
`,
    );
    expect(loaded).toHaveLength(1000);
    expect(loaded.every(({ schedule }) => schedule === '*/5 * * * * *')).toBe(true);
  });

  it('is parsed as YAML 1.2 even if its directive names 1.1', async () => {
    const text = `%YAML 1.1\n---\n${minimal({ project: 'datasets: yes' })}`;
    const { faults } = await errorOf(loadText(directory, text));
    expect(places(faults)).toEqual(['8:15 projects[0].datasets must be true or false, not "yes"']);
  });

  it('may have a byte order mark and CRLF line ends, which do not shift error positions', async () => {
    const text = `\ufeff${minimal({ top: 'jitter: 1' })}`.replaceAll('\n', '\r\n');
    const { faults } = await errorOf(loadText(directory, text));
    expect(places(faults)).toEqual(['6:9 jitter must be a duration such as 10s, not "1"']);
  });

  it('resolves its paths from the directory of a symbolic link, not of its target', async () => {
    const elsewhere = join(directory, 'elsewhere');
    mkdirSync(elsewhere);
    await loadText(directory, minimal());
    symlinkSync(join(directory, 'evalwatch.yaml'), join(elsewhere, 'linked.yaml'));
    const config = await load(join(elsewhere, 'linked.yaml'));
    expect(config.store).toMatchObject({ path: join(elsewhere, 'data/evalwatch.db') });
  });
});

it.each([
  ['service', 'timeout: 500ms', 'service.timeoutMs', 500],
  ['service', 'timeout: 1m30ms', 'service.timeoutMs', 60_030],
  ['top', 'jitter: 5m', 'jitterMs', 300_000],
  ['top', 'store: { retention: 1h }', 'store.retentionMs', 3_600_000],
  ['top', 'store: { retention: 90m }', 'store.retentionMs', 5_400_000],
  ['top', 'store: { retention: 1d2h3m4s5ms }', 'store.retentionMs', 93_784_005],
  ['service', 'max_response_size: 1024B', 'service.maxResponseBytes', 1024],
  ['service', 'max_response_size: 64MiB', 'service.maxResponseBytes', 67_108_864],
  ['base_url', 'https://e.example/', 'service.baseUrl', 'https://e.example'],
  ['base_url', 'https://e.example/api//', 'service.baseUrl', 'https://e.example/api'],
  ['base_url', 'HTTPS://E.example:443/API', 'service.baseUrl', 'https://e.example/API'],
  ['base_url', 'https://e.example/a@b', 'service.baseUrl', 'https://e.example/a@b'],
  ['base_url', 'http://LOCALHOST:8080/api', 'service.baseUrl', 'http://localhost:8080/api'],
  ['base_url', 'http://127.255.255.254', 'service.baseUrl', 'http://127.255.255.254'],
  ['base_url', 'http://127.1', 'service.baseUrl', 'http://127.0.0.1'],
  ['base_url', 'http://[0:0::1]', 'service.baseUrl', 'http://[::1]'],
  ['service', 'proxy_url: https://p.example/', 'service.proxyUrl', 'https://p.example/'],
  ['service', 'proxy_url: http://me:a%40b@p:1', 'service.proxyUrl', 'http://me:a%40b@p:1/'],
  [
    'service',
    'prompt_url: https://E.example/p/{project}/{prompt_id}?tab={project}#x',
    'promptUrl',
    'https://e.example/p/{project}/{prompt_id}?tab={project}#x',
  ],
  [
    'top',
    'web: { allowed_hosts: [A.example, 10.0.0.7], external_url: https://B.example/x/ }',
    'web',
    { allowedHosts: ['a.example', '10.0.0.7', 'b.example'], externalUrl: 'https://b.example/x' },
  ],
  ['top', 'web: { listen: "0.0.0.0:0" }', 'web', { host: '0.0.0.0', port: 0 }],
  ['top', 'web: { listen: "[::1]:10570" }', 'web', { host: '::1', port: 10_570 }],
  ['top', 'web: { listen: "[::]:65535" }', 'web', { host: '::', port: 65_535 }],
  ['top', 'web: { listen: "localhost:80" }', 'web', { host: 'localhost', port: 80 }],
  ['top', 'web: { listen: "m_1.example.com:80" }', 'web', { host: 'm_1.example.com', port: 80 }],
  ['project', 'timezone: europe/berlin', 'projects.0.timezone', 'Europe/Berlin'],
  [
    'project',
    'timezone: America/Argentina/Buenos_Aires',
    'projects.0.timezone',
    'America/Argentina/Buenos_Aires',
  ],
])('in %s, %s is loaded as %s %j', async (place, text, path, value) => {
  const file =
    place === 'base_url'
      ? minimal().replace('https://evaluation.example.com', text)
      : minimal({ [place]: text });
  const loaded = path
    .split('.')
    .reduce<unknown>(
      (part, key) => (part as Record<string, unknown>)[key],
      await loadText(directory, file),
    );
  expect([loaded]).toMatchObject([value]);
});

describe('the permitted range', () => {
  const at = (section: 'service' | 'top', text: string) => minimal({ [section]: text });

  it.each([
    ['service', 'timeout', '100ms', '10m', '99ms', '10m1ms'],
    ['service', 'retries', '0', '10', '-1', '11'],
    ['service', 'max_concurrency', '1', '256', '0', '257'],
    ['service', 'max_requests_per_second', '0', '10000', '-0.1', '10000.1'],
    ['service', 'max_items', '1', '10000000', '0', '10000001'],
    ['service', 'max_response_size', '1KiB', '256MiB', '1023B', '257MiB'],
    ['top', 'jitter', '0s', '1h', undefined, '1h1ms'],
    ['top', 'missing_after', '1', '1000', '0', '1001'],
    ['top', 'store: { postgres_url_file: url, lease', '5s }', '5m }', '4999ms }', '5m1ms }'],
    ['top', 'store: { retention', '1s }', '3650d }', '999ms }', '3651d }'],
  ] as const)('includes both ends: %s %s', async (section, key, least, most, below, above) => {
    for (const value of [least, most]) {
      await loadText(directory, at(section, `${key}: ${value}`));
    }
    for (const value of [below, above].filter((text) => text !== undefined)) {
      const { faults } = await errorOf(loadText(directory, at(section, `${key}: ${value}`)));
      expect(faults.map(({ message }) => message)).toEqual([
        expect.stringMatching(/ must be (a (whole )?number )?from \S+ to \S+, not \S+$/),
      ]);
    }
  });

  it('ends at 512 code points for a project id', async () => {
    const id = '😀'.repeat(512);
    const config = await loadText(directory, minimal().replace('checkout-bot', id));
    expect(config.projects[0]?.id).toBe(id);
    const { faults } = await errorOf(
      loadText(directory, minimal().replace('checkout-bot', `${id}x`)),
    );
    expect(places(faults)).toEqual([
      '5:9 projects[0].id must have at most 512 characters, not 513',
    ]);
  });
});

describe('a text value', () => {
  const TOO_LONG = 'must have at most 4096 characters';

  it('may be as long as 4,096 characters', async () => {
    const path = '/'.padEnd(4096, 'x');
    const config = await loadText(directory, minimal({ top: `store: { path: "${path}" }` }));
    expect(config.store).toMatchObject({ path });
    const { faults } = await errorOf(
      loadText(directory, minimal({ top: `schedule: "${'x'.repeat(4096)}"` })),
    );
    expect(places(faults)).toEqual([
      `6:11 schedule "${'x'.repeat(64)}…" must be a cron expression of 5 fields, or 6 with seconds first, not 1`,
    ]);
  });

  it.each([
    ['6:16', 'store.path', minimal({ top: `store: { path: "/${'x'.repeat(4096)}" }` })],
    ['6:11', 'schedule', minimal({ top: `schedule: "${'x'.repeat(4097)}"` })],
    ['6:15', 'projects[0].schedule', minimal({ project: `schedule: "${'x'.repeat(4097)}"` })],
    ['6:9', 'jitter', minimal({ top: `jitter: "${'1'.repeat(4097)}"` })],
    ['6:18', 'projects[0].api_key_env', minimal({ project: `api_key_env: ${'X'.repeat(4097)}` })],
  ])('is rejected once and not repeated if it is longer: %s %s', async (place, option, text) => {
    const { faults } = await errorOf(loadText(directory, text));
    expect(places(faults)).toEqual([`${place} ${option} ${TOO_LONG}`]);
  });
});

describe('base_url', () => {
  const service = (url: string, more = '') =>
    minimal({ service: more }).replace('https://evaluation.example.com', url);

  it.each([
    ['http://localhost:8080', ''],
    ['http://127.8.8.8', ''],
    ['http://[::1]:8080', ''],
    ['http://evaluation.example.com', 'allow_http: true'],
    ['http://localhost', 'allow_http: true\nproxy_url: http://proxy.example.com'],
    ['https://evaluation.example.com', 'proxy_url: http://proxy.example.com'],
  ])('accepts %s with the options %j', async (url, more) => {
    const config = await loadText(directory, service(url, more));
    expect(config.service.baseUrl).toBe(url);
  });
});

describe('a key source', () => {
  const withEnv = minimal().replace('api_key_file: key', 'api_key_env: EVALUATION_KEY');

  it('of a project overrides that of the service, whether file or variable', async () => {
    const config = await loadText(
      directory,
      `${withEnv}    api_key_file: own\n  - id: other\n    api_key_env: OTHER_KEY\n  - id: third\n`,
      { env: { EVALUATION_KEY: 'service-key', OTHER_KEY: 'other-key' } },
    );
    expect(config.projects.map(({ key }) => key)).toEqual([
      { file: join(directory, 'own') },
      { env: 'OTHER_KEY', value: 'other-key' },
      { env: 'EVALUATION_KEY', value: 'service-key' },
    ]);
  });

  it.each([{}, { EVALUATION_KEY: '' }, { EVALUATION_KEY: ' \n' }])(
    'is rejected for an unset or empty variable only if secrets are required: %j',
    async (env) => {
      const error = await errorOf(loadText(directory, withEnv, { env }));
      expect(places(error.faults)).toEqual([
        '3:16 service.api_key_env names an environment variable that is not set or is empty',
      ]);
      const config = await loadText(directory, withEnv, { env, requireSecrets: false });
      expect(config.projects[0]?.key).toEqual({ env: 'EVALUATION_KEY', value: undefined });
    },
  );
});

describe('a heartbeat', () => {
  const withHeartbeat = (heartbeat: string) => minimal({ top: `heartbeat: ${heartbeat}` });

  it.each([
    ['{ url: "https://hc-ping.com/5ecret?rid=1" }', { url: 'https://hc-ping.com/5ecret?rid=1' }],
    ['{ url: HTTP://push }', { url: 'http://push/' }],
    ['{ url_file: heartbeat }', { file: join(directory, 'heartbeat') }],
    ['{}', undefined],
    ['', undefined],
  ])('is loaded from %s', async (text, heartbeat) => {
    const config = await loadText(directory, withHeartbeat(text));
    expect(config.heartbeat).toEqual(heartbeat);
  });
});

describe('receivers', () => {
  const withReceivers = (notify: string) => minimal({ project: 'team: search', top: notify });

  it.each([
    ['no filter', '', true, true],
    ['its team', 'teams: [search]', true, false],
    ['its id', 'projects: [checkout-bot]', true, false],
    ['the id of another', 'projects: [other]', false, true],
    ['its team and another id', 'teams: [search], projects: [other]', true, true],
  ])('with %s are for these projects', async (_, filter, first, other) => {
    const text = `${minimal({ project: 'team: search' })}  - id: other
notify: [{ name: a, type: slack, url_file: x, ${filter} }]\n`;
    const { notify, projects } = await loadText(directory, text);
    const [receiver] = notify;
    expect(projects.map((project) => receiver && isFor(receiver, project))).toEqual([first, other]);
  });

  it.each(['', '[]'])('are none with "notify: %s"', async (list) => {
    const { notify } = await loadText(directory, withReceivers(`notify: ${list}`));
    expect(notify).toEqual([]);
  });
});

describe('a PostgreSQL store', () => {
  const withStore = (store: string) => minimal({ top: `store: { ${store} }` });

  it('is not overridden by EVALWATCH_STORE_PATH', async () => {
    const env = { EVALWATCH_STORE_PATH: '/data/evalwatch.db' };
    const config = await loadText(directory, withStore('postgres_url_file: url'), { env });
    expect(config.store).not.toHaveProperty('path');
  });

  it('may name an unset variable only if secrets are not required', async () => {
    const text = withStore('postgres_url_env: DATABASE_URL');
    const error = await errorOf(loadText(directory, text));
    expect(places(error.faults)).toEqual([
      '6:28 store.postgres_url_env names an environment variable that is not set or is empty',
    ]);
    await loadText(directory, text, { requireSecrets: false });
  });

  it('is not selected by a URL in EVALWATCH_STORE_PATH, and the error does not repeat the URL', async () => {
    const env = { EVALWATCH_STORE_PATH: 'postgres://eva:5ecret@db/evalwatch' };
    const { message } = await errorOf(loadText(directory, minimal(), { env }));
    expect(message).toBe(
      'EVALWATCH_STORE_PATH: must be the path of a SQLite file; for PostgreSQL use postgres_url_file or postgres_url_env',
    );
  });
});

describe('overriding the file by environment variables', () => {
  const overrides = {
    EVALWATCH_SERVICE_BASE_URL: 'https://other.example.com/',
    EVALWATCH_STORE_PATH: 'here.db',
    EVALWATCH_WEB_LISTEN: '0.0.0.0:80',
    EVALWATCH_LOG_LEVEL: 'error',
  };

  it('works for four options and resolves a relative path from the working directory', async () => {
    const config = await loadText(directory, minimal(), { env: overrides });
    expect(config.service.baseUrl).toBe('https://other.example.com');
    expect(config.store).toMatchObject({ path: join(process.cwd(), 'here.db') });
    expect(config.web).toMatchObject({ host: '0.0.0.0', port: 80 });
    expect(config.log.level).toBe('error');
  });

  it('ignores empty variables', async () => {
    const env = Object.fromEntries(Object.keys(overrides).map((name) => [name, '']));
    expect(await loadText(directory, minimal(), { env })).toEqual(
      await loadText(directory, minimal()),
    );
  });

  it('replaces a missing required option and an invalid one', async () => {
    const text = minimal({ top: 'log:\n  level: loud' }).replace(/ {2}base_url: .*\n/, '');
    const config = await loadText(directory, text, { env: overrides });
    expect(config.service.baseUrl).toBe('https://other.example.com');
    expect(config.log.level).toBe('error');
  });

  it('names each invalid variable, beside the errors of the file', async () => {
    const env = {
      EVALWATCH_SERVICE_BASE_URL: 'http://other.example.com',
      EVALWATCH_WEB_LISTEN: '80',
      EVALWATCH_LOG_LEVEL: 'warning',
    };
    const error = await errorOf(loadText(directory, minimal({ top: 'jitter: 2h' }), { env }));
    expect(error.message.split('\n')).toEqual([
      'EVALWATCH_LOG_LEVEL: must be one of debug, info, warn, error, not "warning"',
      'EVALWATCH_SERVICE_BASE_URL: must start with https://, unless allow_http is true: anyone on the network could read the API key',
      'EVALWATCH_WEB_LISTEN: must be host:port, such as 127.0.0.1:10570, not "80"',
      `${join(directory, 'evalwatch.yaml')}:6:9: jitter must be from 0s to 1h, not "2h"`,
    ]);
    expect(error.faults[0]).toMatchObject({
      file: 'EVALWATCH_LOG_LEVEL',
      line: 0,
      column: 0,
    });
  });
});

describe('a ca_file', () => {
  const text = minimal({ service: 'ca_file: ca.pem' });
  const damaged = String(rootCertificates[0]).replace(/\n.{10}/, '\nAAAAAAAAAA');

  it.each([
    ['nothing', '', 'ca.pem" is not a PEM file: no certificate found'],
    ['damage', `${rootCertificates[1]}\n${damaged}`, 'ca.pem" has a damaged certificate (2 of 2)'],
    [
      'a certificate without an end before a damaged one',
      `${rootCertificates[0]}\n${rootCertificates[1]?.replace('-----END CERTIFICATE-----', '')}\n${damaged}`,
      'ca.pem" has a damaged certificate (2 of 3)',
    ],
  ])('is rejected if it contains %s', async (_what, content, message) => {
    writeFileSync(join(directory, 'ca.pem'), content);
    const { faults } = await errorOf(loadText(directory, text));
    expect(places(faults)).toEqual([expect.stringContaining(message)]);
    expect(faults[0]).toMatchObject({ line: 4, column: 12 });
  });
});

describe('an unreadable configuration file', () => {
  const ADVICE = '; name one with --config or EVALWATCH_CONFIG, or write one with `evalwatch init`';

  it.each([
    ['missing.yaml', `there is no such file${ADVICE}`],
    ['evalwatch.yaml/inside.yaml', `there is no such file${ADVICE}`],
    ['', 'this is a directory, not a file'],
    ['nul\0.yaml', 'reading the file failed (ERR_INVALID_ARG_VALUE)'],
    ['loop.yaml', 'the symbolic links of this path form a loop'],
  ])('is reported as one error: %j', async (name, message) => {
    await loadText(directory, minimal());
    rmSync(join(directory, 'loop.yaml'), { force: true });
    symlinkSync('loop.yaml', join(directory, 'loop.yaml'));
    const file = join(directory, name);
    const error = await errorOf(load(file));
    expect(error.reason).toBe('unreadable');
    expect(error.message).toBe(`${file}:1:1: ${message}`);
  });
});

describe('the complexity limit of a file', () => {
  it('counts what aliases repeat, of which a few bytes can have gigabytes', async () => {
    const text = `x: &x [${'1,'.repeat(1000)}]\nprojects:\n${'  - *x\n'.repeat(1000)}`;
    const { faults } = await errorOf(loadText(directory, text));
    expect(places(faults)).toEqual([
      '1000:5 not usable YAML: more than 1000000 values once aliases are expanded',
    ]);
  });

  const flow = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
  const block = (levels: number) =>
    Array.from({ length: levels }, (_, level) => `${' '.repeat(level)}a:`)
      .join('\n')
      .concat(' 1\n');

  it.each([
    ['brackets', flow],
    ['indentation', block],
  ])('allows 100 levels of nesting and rejects 101: %s', async (_, nested) => {
    const message = 'not usable YAML: more than 100 levels of nesting';
    const deepest = await errorOf(loadText(directory, nested(100)));
    expect(deepest.message).not.toContain(message);
    const { faults } = await errorOf(loadText(directory, nested(101)));
    expect(faults).toMatchObject([{ message }]);
  });

  it('is rejected if it has more tokens than the limit', async () => {
    const { faults } = await errorOf(loadText(directory, '\n'.repeat(1_200_001)));
    expect(places(faults)).toEqual(['1:1 not usable YAML: more than 1200000 tokens']);
  });
});

describe('a configuration error', () => {
  it('is reported once at the anchor, not at its aliases', async () => {
    const { faults } = await errorOf(
      loadText(
        directory,
        `service: { base_url: https://evaluation.example.com, api_key_file: key }
projects:
  - &first { id: "", datasets: 1 }
  - *first
`,
      ),
    );
    expect(new Set(faults.map(({ line }) => line))).toEqual(new Set([3]));
    expect(new Set(places(faults)).size).toBe(faults.length);
  });
});

describe('the shipped config/evalwatch.yaml', () => {
  const shipped = join(import.meta.dirname, '../../../config/evalwatch.yaml');

  it('states the default of every option it sets', async () => {
    const config = await load(shipped);
    const plain = await loadText(
      directory,
      minimal().replace('api_key_file: key', 'api_key_file: /run/secrets/evaluation_api_key'),
    );
    expect(config.store).toMatchObject({ path: join(shipped, '../data/evalwatch.db') });
    expect({ ...config, file: '', files: [], sources: [], store: '' }).toEqual({
      ...plain,
      file: '',
      files: [],
      sources: [],
      store: '',
    });
    expect(config.store.retentionMs).toBe(plain.store.retentionMs);
  });

  it('has every option of the schema', () => {
    const text = readFileSync(shipped, 'utf8');
    for (const key of Object.values(OPTIONS.keys).flat()) {
      expect(text).toMatch(new RegExp(`^[ #-]*${key}:`, 'm'));
    }
  });
});

it('loading 5,000 projects yields to the event loop', async () => {
  const projects = Array.from({ length: 5000 }, (_, n) => `  - id: project-${n}\n`).join('');
  let turns = 0;
  const count = () => {
    turns += 1;
    turn = setImmediate(count);
  };
  let turn = setImmediate(count);
  const config = await loadText(
    directory,
    minimal().replace(/projects:[^]*/, `projects:\n${projects}`),
  );
  clearImmediate(turn);
  expect(config.projects).toHaveLength(5000);
  // Some 30,000 tokens.
  expect(turns).toBeGreaterThan(20);
});
