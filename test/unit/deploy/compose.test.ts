import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { DEFAULT_KEY } from '../../../src/simulator/key-ring.ts';
import { DEFAULT_PROJECTS } from '../../../src/simulator/vocabulary.ts';
import { CONFIG, image, loadInImage, readText, readYaml } from './repository.ts';

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly profiles?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
  readonly network_mode?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, null>>;
}

interface Mount {
  readonly source: string;
  readonly target: string;
  readonly mode: string | undefined;
}

const compose = readYaml('compose.yaml') as Compose;
const services = Object.entries(compose.services);
const VARIABLE = /\$\{(\w+):([-?])([^}]*)\}/g;

/** As Compose does it, for the two forms that are used. */
function interpolate(text: string, env: Readonly<Record<string, string | undefined>> = {}): string {
  return text.replaceAll(VARIABLE, (_, name: string, form: string, rest: string) => {
    const value = env[name];
    if (value !== undefined && value !== '') return value;
    if (form === '?') throw new Error(rest);
    return rest;
  });
}

function mounts(service: Service): readonly Mount[] {
  return (service.volumes ?? []).map((text) => {
    const [source = '', target = '', mode] = interpolate(text).split(':');
    return { source, target, mode };
  });
}

const isFile = ({ source }: Mount) => source.startsWith('.');

describe('every service of compose.yaml', () => {
  it.each(services)('%s is confined', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      restart: 'unless-stopped',
    });
    expect(service).not.toHaveProperty('privileged');
    expect(service).not.toHaveProperty('cap_add');
  });

  it.each(services)('%s names the version of its image', (_, service) => {
    expect(service.image).toMatch(/^[a-z/]+:v?\d+\.\d+\.\d+$/);
    expect(service.image === image.name).toBe(service.build !== undefined);
  });

  it.each(services)('%s mounts files that are there, read-only', (_, service) => {
    const files = mounts(service).filter(isFile);
    const missing = files.filter(({ source }) => !existsSync(join(CONFIG, source)));
    expect(missing).toEqual([]);
    expect(files.filter(({ mode }) => mode !== 'ro')).toEqual([]);
  });

  it.each(services)('%s uses volumes and secrets that are declared', (_, service) => {
    const volumes = mounts(service).filter((mount) => !isFile(mount));
    expect(Object.keys(compose.volumes)).toEqual(
      expect.arrayContaining(volumes.map(({ source }) => source)),
    );
    expect(Object.keys(compose.secrets)).toEqual(
      expect.arrayContaining([...(service.secrets ?? [])]),
    );
  });

  it.each(services)('%s is published to this machine only', (_, service) => {
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:(\d+):\1$/);
  });

  it.each(services)('%s has a health check', (name, service) => {
    expect(service.healthcheck !== undefined).toBe(name !== 'evalwatch');
    expect(image.hasHealthCheck).toBe(true);
  });
});

describe('evalwatch in compose.yaml', () => {
  const { evalwatch } = compose.services as { readonly evalwatch: Service };

  it('is built from this repository', () => {
    expect(existsSync(join(CONFIG, evalwatch.build ?? '', 'Dockerfile'))).toBe(true);
  });

  it('publishes the port of the image and keeps its store in a volume', () => {
    expect(evalwatch.ports).toEqual([`127.0.0.1:${image.port}:${image.port}`]);
    const stored = mounts(evalwatch).find(({ target }) => target === image.volume);
    expect(stored?.source).toBe('evalwatch-data');
    expect(dirname(image.env['EVALWATCH_STORE_PATH'] ?? '')).toBe(image.volume);
  });

  it('reads the configuration where the image looks for it, and the key where that says', async () => {
    const file = mounts(evalwatch).find(
      ({ target }) => target === image.env['EVALWATCH_CONFIG'],
    )?.source;
    const config = await loadInImage(join(CONFIG, file ?? ''));
    const secrets = (evalwatch.secrets ?? []).map((name) => ({ file: `/run/secrets/${name}` }));
    expect(config.projects.map(({ key }) => key)).toEqual(secrets);
  });

  it('asks for the key file by name rather than start without one', () => {
    const { file } = compose.secrets['evaluation_api_key'] ?? { file: '' };
    expect(() => interpolate(file)).toThrow('name the file that holds the API key');
    expect(interpolate(file, { EVALUATION_API_KEY_FILE: './key' })).toBe('./key');
  });

  it('leaves to the configuration what the environment does not say', () => {
    const values = Object.values(evalwatch.environment ?? {}).map((value) => interpolate(value));
    expect(new Set(values)).toEqual(new Set(['']));
  });
});

describe('the simulator in compose.yaml', () => {
  const text = readFileSync(join(CONFIG, 'compose/simulator.env'), 'utf8');
  const env = parseEnv(text);
  const { simulator } = compose.services as { readonly simulator: Service };

  it('runs in its profile only, on the loopback of evalwatch', () => {
    expect(simulator.profiles).toEqual([env['COMPOSE_PROFILES']]);
    expect(simulator.network_mode).toBe('service:evalwatch');
    expect(services.filter(([, { profiles }]) => profiles !== undefined)).toHaveLength(1);
  });

  it('is turned on by variables that compose.yaml reads', () => {
    const read = [...readText('config/compose.yaml').matchAll(VARIABLE)].map(([, name]) => name);
    const { COMPOSE_PROFILES: _, ...rest } = env;
    expect(read).toEqual(expect.arrayContaining(Object.keys(rest)));
  });

  it('serves what its configuration asks for, with its key', async () => {
    const config = await loadInImage(join(CONFIG, env['EVALWATCH_CONFIG_FILE'] ?? ''));
    const { baseUrl } = config.service;
    expect(simulator.command).toEqual(['simulate', '--port', new URL(baseUrl).port]);
    expect(simulator.healthcheck?.test.join(' ')).toContain(`fetch('${baseUrl}/')`);
    expect(config.projects.map(({ id }) => id)).toEqual(DEFAULT_PROJECTS);
    const keyFile = join(CONFIG, env['EVALUATION_API_KEY_FILE'] ?? '');
    expect(readFileSync(keyFile, 'utf8').trim()).toBe(DEFAULT_KEY);
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

  it('does what the shipped one does, but for where the others are', () => {
    const shipped = readYaml('prometheus/prometheus.yml') as Prometheus;
    const changed = structuredClone(shipped);
    changed.scrape_configs[0].static_configs[0].targets = [`evalwatch:${image.port}`];
    changed.alerting.alertmanagers[0].static_configs[0].targets = ['alertmanager:9093'];
    expect(config).toEqual(changed);
    expect(alertmanager?.ports).toEqual(['127.0.0.1:9093:9093']);
  });

  it('has its configuration and its rules mounted where it looks for them', () => {
    const targets = mounts(prometheus as Service).map(({ target }) => target);
    const file = '/etc/prometheus/prometheus.yml';
    expect(prometheus?.command).toContain(`--config.file=${file}`);
    const rules = config.rule_files.map((name) => join(dirname(file), name));
    expect(targets).toEqual(expect.arrayContaining([file, ...rules]));
  });
});

describe('Grafana in compose.yaml', () => {
  const { grafana, prometheus } = compose.services as Record<string, Service>;

  it('asks the Prometheus beside it', () => {
    const { datasources } = readYaml('grafana/provisioning/datasources/prometheus.yaml') as {
      readonly datasources: readonly { readonly url: string }[];
    };
    const [, port] = prometheus?.ports?.[0]?.match(/:(\d+)$/) ?? [];
    expect(datasources.map(({ url }) => url)).toEqual([`http://prometheus:${port}`]);
  });

  it('has the dashboards where its provisioning looks for them', () => {
    const { providers } = readYaml('grafana/provisioning/dashboards/evalwatch.yaml') as {
      readonly providers: readonly { readonly options: { readonly path: string } }[];
    };
    const targets = mounts(grafana as Service).map(({ target }) => target);
    expect(targets).toContain('/etc/grafana/provisioning');
    for (const { options } of providers) expect(targets).toContain(options.path);
  });
});
