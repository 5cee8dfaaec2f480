import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { DEFAULT_KEY } from '../../../src/simulator/service.ts';
import { DEFAULT_PROJECTS } from '../../../src/simulator/texts.ts';
import { CONFIG, image, loadInImage, readText, readYaml } from './repository.ts';

const VARIABLE = /\$\{(\w+):([-?])([^}]*)\}/g;
/** Values for the directories that the user must name: the example, and the secrets of the simulator. */
const DIRECTORIES = {
  EVALWATCH_CONFIG_DIR: '.',
  EVALWATCH_SECRETS_DIR: './compose/simulator/secrets',
};

const compose = readCompose('compose.yaml');
const scale = readCompose('compose.scale.yaml');

const EVERY = [
  ['compose.yaml', compose],
  ['compose.scale.yaml', scale],
] as const;

describe.each(EVERY)('every service of %s', (_file, of: Compose) => {
  const all = Object.entries(of.services);

  it.each(all)('%s is confined, and published on 127.0.0.1 only', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      ulimits: { core: 0 },
      restart: 'unless-stopped',
    });
    expect(service).not.toHaveProperty('privileged');
    expect(service).not.toHaveProperty('cap_add');
    for (const { host_ip: address, published, target } of service.ports ?? []) {
      expect([address, published.split('-')[0]]).toEqual(['127.0.0.1', String(target)]);
    }
  });

  it.each(all)('%s has a pinned image, with the digest if it is not ours', (_, service) => {
    const isOurs = service.image === image.name;
    expect(isOurs).toBe(service.build !== undefined);
    expect(service.image).toMatch(
      isOurs ? /^evalwatch:\d+\.\d+\.\d+$/ : /^[a-z/]+:v?\d+\.\d+(\.\d+)?@sha256:[\da-f]{64}$/,
    );
  });

  it.each(all)(
    '%s mounts only existing files, read-only, and declared volumes and secrets',
    (_, service) => {
      const { files = [], volumes = [] } = Object.groupBy(mounts(service), (mount) =>
        isFile(mount) ? 'files' : 'volumes',
      );
      expect(files.filter(({ source }) => !existsSync(join(CONFIG, source)))).toEqual([]);
      expect(files.filter(({ mode }) => mode !== 'ro')).toEqual([]);
      const declared = [...Object.keys(of.volumes), ...Object.keys(of.secrets ?? {})];
      const used = [...volumes.map(({ source }) => source), ...(service.secrets ?? [])];
      expect(declared).toEqual(expect.arrayContaining(used));
    },
  );

  it.each(all)('%s has a health check, evalwatch that of its image', (name, service) => {
    expect(service.healthcheck !== undefined).toBe(name !== 'evalwatch');
    expect(image.hasHealthCheck).toBe(true);
  });
});

/** Loads the configuration that evalwatch reads if it is in this directory. */
async function configOf(service: Service, from: string): Promise<Config> {
  const file = image.env['EVALWATCH_CONFIG'] ?? '';
  const mounted = mounts(service, { ...DIRECTORIES, EVALWATCH_CONFIG_DIR: from });
  const directory = mounted.find(({ target }) => target === dirname(file))?.source ?? '';
  return await loadInImage(join(CONFIG, directory, basename(file)));
}

it.each(EVERY)(
  'evalwatch in %s mounts directories, not files, so that replaced files become visible',
  (_, of) => {
    const sources = mounts(of.services['evalwatch'] as Service)
      .filter(isFile)
      .map(({ source }) => source);
    expect(sources).toHaveLength(2);
    expect(sources.filter((source) => !statSync(join(CONFIG, source)).isDirectory())).toEqual([]);
    expect(of.services['evalwatch']?.secrets).toBeUndefined();
  },
);

describe('evalwatch in compose.yaml', () => {
  const { evalwatch } = compose.services as { readonly evalwatch: Service };

  it('publishes the port of the image and keeps its store in a volume', () => {
    expect(evalwatch.ports).toMatchObject([{ published: String(image.port), target: image.port }]);
    const stored = mounts(evalwatch).find(({ target }) => target === image.volume);
    expect(stored?.source).toBe('evalwatch-data');
    expect(dirname(image.env['EVALWATCH_STORE_PATH'] ?? '')).toBe(image.volume);
  });

  it('mounts the configuration where the image reads it, with the key in /run/secrets', async () => {
    const config = await configOf(evalwatch, '.');
    const key = { file: '/run/secrets/evaluation_api_key' };
    expect(config.projects.map((project) => project.key)).toEqual([key]);
  });

  it('requires EVALWATCH_SECRETS_DIR and mounts it read-only at /run/secrets', () => {
    expect(() => mounts(evalwatch, { EVALWATCH_CONFIG_DIR: '.' })).toThrow(
      'name the directory that holds evaluation_api_key',
    );
    const env = { ...DIRECTORIES, EVALWATCH_SECRETS_DIR: './keys' };
    expect(mounts(evalwatch, env)).toContainEqual({
      source: './keys',
      target: '/run/secrets',
      mode: 'ro',
    });
  });

  it('has empty environment variables by default, so that the configuration file decides', () => {
    const values = Object.values(evalwatch.environment ?? {}).map((value) => interpolate(value));
    expect(new Set(values)).toEqual(new Set(['']));
  });
});

it('docker run in README.md restricts evalwatch like compose.yaml', () => {
  const [command = ''] = /docker run -d [^`]*/.exec(readText('README.md')) ?? [];
  const { evalwatch } = compose.services as {
    readonly evalwatch: Service & {
      readonly restart: string;
      readonly mem_limit: string;
      readonly logging: { driver: string };
    };
  };
  const [port] = evalwatch.ports ?? [];
  const options = {
    restart: `--restart ${evalwatch.restart}`,
    mem_limit: `--memory ${evalwatch.mem_limit}`,
    read_only: '--read-only',
    cap_drop: '--cap-drop ALL',
    security_opt: '--security-opt no-new-privileges:true',
    tmpfs: '--tmpfs /tmp',
    logging: `--log-driver ${evalwatch.logging.driver}`,
    ports: `-p ${port?.host_ip}:${port?.published}:${port?.target}`,
  };
  for (const [name, option] of Object.entries(options)) {
    expect(evalwatch).toHaveProperty(name);
    expect(command).toContain(` ${option} `);
  }
  const directories = mounts(evalwatch).map(({ target, mode }) =>
    mode === undefined ? target : `${target}:${mode}`,
  );
  for (const target of directories) expect(command).toContain(`:${target} `);
});

describe('the simulator in compose.yaml', () => {
  const text = readFileSync(join(CONFIG, 'compose/simulator.env'), 'utf8');
  const env = parseEnv(text);
  const { simulator } = compose.services as { readonly simulator: Service };

  it('runs only in its profile, in the network namespace of evalwatch', () => {
    expect(simulator.profiles).toEqual([env['COMPOSE_PROFILES']]);
    expect(simulator.network_mode).toBe('service:evalwatch');
    const optional = Object.values(compose.services).filter(({ profiles }) => profiles);
    expect(optional).toEqual([simulator]);
  });

  it('is turned on by variables that compose.yaml reads', () => {
    const read = [...readText('config/compose.yaml').matchAll(VARIABLE)].map(([, name]) => name);
    const { COMPOSE_PROFILES: _, ...rest } = env;
    expect(read).toEqual(expect.arrayContaining(Object.keys(rest)));
  });

  it('serves the port, the projects and the key that its configuration uses', async () => {
    const config = await loadInImage(
      join(CONFIG, env['EVALWATCH_CONFIG_DIR'] ?? '', 'evalwatch.yaml'),
    );
    const { baseUrl } = config.service;
    expect(simulator.command).toEqual(['simulate', '--port', new URL(baseUrl).port]);
    expect(simulator.healthcheck?.test.join(' ')).toContain(`fetch('${baseUrl}/')`);
    expect(config.projects.map(({ id }) => id)).toEqual(DEFAULT_PROJECTS);
    const keyFile = join(CONFIG, env['EVALWATCH_SECRETS_DIR'] ?? '', 'evaluation_api_key');
    expect(readFileSync(keyFile, 'utf8').trim()).toBe(DEFAULT_KEY);
  });
});

describe('evalwatch in compose.scale.yaml', () => {
  const { evalwatch, postgres } = scale.services as Record<string, Service>;

  it('unsets EVALWATCH_STORE_PATH, so that no worker falls back to a local store', () => {
    expect(evalwatch?.environment?.['EVALWATCH_STORE_PATH']).toBe('');
  });

  it('reads the database URL and the key from /run/secrets', async () => {
    const config = await configOf(evalwatch as Service, './compose/scale');
    const secrets = ['evaluation_api_key', 'evalwatch_postgres'];
    const [key, url] = secrets.map((name) => ({ file: `/run/secrets/${name}` }));
    expect(config.projects.map((project) => project.key)).toEqual([key]);
    expect(config.store).toMatchObject({ postgresUrl: url });
  });

  it('has a database service that matches the URL in the first lines of the file', () => {
    const [, user, host, database] =
      /postgres:\/\/(\w+):%s@(\w+)\/(\w+)/.exec(readText('config/compose.scale.yaml')) ?? [];
    expect(scale.services).toHaveProperty(String(host));
    // The database is named like its user.
    expect(postgres?.environment).toMatchObject({ POSTGRES_USER: user });
    expect(database).toBe(user);
    expect(postgres?.secrets?.map((name) => `/run/secrets/${name}`)).toEqual([
      postgres?.environment?.['POSTGRES_PASSWORD_FILE'],
    ]);
  });
});

interface Prometheus {
  readonly rule_files: readonly string[];
  readonly scrape_configs: readonly [{ readonly static_configs: readonly [Targets] }];
  readonly alerting: {
    readonly alertmanagers: readonly [{ readonly static_configs: readonly [Targets] }];
  };
}

interface Targets {
  targets: readonly string[];
}

describe('Prometheus in compose.yaml', () => {
  const config = readYaml('compose/prometheus.yml') as Prometheus;
  const { prometheus, alertmanager } = compose.services as Record<string, Service>;

  it('has the shipped configuration, except for the addresses of evalwatch and Alertmanager', () => {
    const shipped = readYaml('prometheus/prometheus.yml') as Prometheus;
    const changed = structuredClone(shipped);
    changed.scrape_configs[0].static_configs[0].targets = [`evalwatch:${image.port}`];
    changed.alerting.alertmanagers[0].static_configs[0].targets = ['alertmanager:9093'];
    expect(config).toEqual(changed);
    expect(alertmanager?.ports).toMatchObject([{ target: 9093 }]);
  });

  it('discovers every worker by DNS in compose.scale.yaml', () => {
    const found = { names: ['evalwatch'], type: 'A', port: image.port, refresh_interval: '15s' };
    expect(readYaml('compose/prometheus.scale.yml')).toEqual({
      ...config,
      scrape_configs: [{ job_name: 'evalwatch', honor_labels: true, dns_sd_configs: [found] }],
    });
    const files = mounts(scale.services['prometheus'] as Service).map(({ source }) => source);
    expect(files).toContain('./compose/prometheus.scale.yml');
    expect(files).not.toContain('./compose/prometheus.yml');
  });

  it('mounts its configuration and its rules where it reads them', () => {
    const targets = mounts(prometheus as Service).map(({ target }) => target);
    const file = '/etc/prometheus/prometheus.yml';
    expect(prometheus?.command).toContain(`--config.file=${file}`);
    const rules = config.rule_files.map((name) => join(dirname(file), name));
    expect(targets).toEqual(expect.arrayContaining([file, ...rules]));
  });
});

it('Alertmanager in compose.yaml mounts its configuration, and the files of its receivers, where it reads them', () => {
  const { alertmanager } = compose.services as Record<string, Service>;
  const target = '/etc/alertmanager';
  expect(alertmanager?.command).toContain(`--config.file=${target}/alertmanager.yml`);
  const source = './alertmanager';
  expect(mounts(alertmanager as Service)).toContainEqual({ source, target, mode: 'ro' });
  const named = readText('config/alertmanager/receivers.yml').matchAll(/_file: (.*)/g);
  const folders = new Set([...named].map(([, file = '']) => dirname(file)));
  expect(folders).toEqual(new Set([target]));
});

describe('Grafana in compose.yaml', () => {
  const { grafana, prometheus } = compose.services as Record<string, Service>;

  it('uses the Prometheus of compose.yaml as its data source', () => {
    const { datasources } = readYaml('grafana/provisioning/datasources/prometheus.yaml') as {
      readonly datasources: readonly { readonly url: string }[];
    };
    const port = prometheus?.ports?.[0]?.target;
    expect(datasources.map(({ url }) => url)).toEqual([`http://prometheus:${port}`]);
  });

  it('mounts its provisioning, and the dashboards where that reads them', () => {
    const { providers } = readYaml('grafana/provisioning/dashboards/evalwatch.yaml') as {
      readonly providers: readonly { readonly options: { readonly path: string } }[];
    };
    const targets = mounts(grafana as Service).map(({ target }) => target);
    expect(targets).toContain('/etc/grafana/provisioning');
    for (const { options } of providers) expect(targets).toContain(options.path);
  });
});

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly profiles?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly ports?: readonly Port[];
  readonly network_mode?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Port {
  readonly host_ip: string | undefined;
  /** A port or a range of ports. */
  readonly published: string;
  readonly target: number;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, null>>;
}

interface Mount {
  readonly source: string;
  readonly target: string;
  readonly mode: string | undefined;
}

type Written = Omit<Service, 'ports'> & {
  readonly ports?: readonly (string | Port)[];
  readonly extends?: { readonly file: string; readonly service: string };
};

/** Reads a file below config/, with `extends` resolved and ports in the long form. */
function readCompose(file: string): Compose {
  const { services, ...others } = readYaml(file) as Omit<Compose, 'services'> & {
    readonly services: Readonly<Record<string, Written>>;
  };
  const complete = Object.entries(services).map(([name, service]): [string, Service] => {
    const { extends: base, ports, volumes = [], ...own } = service;
    const from = base && readCompose(base.file).services[base.service];
    const given = ports?.map(toPort) ?? from?.ports;
    const targets = new Set(mounts({ volumes }).map(({ target }) => target));
    // As in Compose, a volume replaces an inherited one with the same target.
    const inherited = (from?.volumes ?? []).filter(
      (volume) => !mounts({ volumes: [volume] }).some(({ target }) => targets.has(target)),
    );
    const all = { volumes: [...inherited, ...volumes], ...(given && { ports: given }) };
    return [name, { ...from, ...own, ...all }];
  });
  return { ...others, services: Object.fromEntries(complete) };
}

function toPort(port: string | Port): Port {
  if (typeof port !== 'string') return port;
  const [, address, published = '', target] = /^(?:([\d.]+):)?(\d+):(\d+)$/.exec(port) ?? [];
  return { host_ip: address, published, target: Number(target) };
}

/** Replaces variables as Compose does, in the two forms used. */
function interpolate(text: string, env: Readonly<Record<string, string | undefined>> = {}): string {
  return text.replaceAll(VARIABLE, (_, name: string, form: string, rest: string) => {
    const value = env[name];
    if (value !== undefined && value !== '') return value;
    if (form === '?') throw new Error(rest);
    return rest;
  });
}

function mounts(
  { volumes = [] }: Pick<Service, 'volumes'>,
  env: Readonly<Record<string, string | undefined>> = DIRECTORIES,
): readonly Mount[] {
  return volumes.map((text) => {
    const [source = '', target = '', mode] = interpolate(text, env).split(':');
    return { source, target, mode };
  });
}

function isFile({ source }: Mount): boolean {
  return source.startsWith('.');
}
