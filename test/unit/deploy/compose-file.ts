import { readYaml } from './repository.ts';

export interface Service {
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
  readonly deploy?: { readonly replicas: number };
}

interface Port {
  readonly host_ip: string | undefined;
  /** A port or a range of ports. */
  readonly published: string;
  readonly target: number;
}

export interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, null>>;
}

interface Mount {
  readonly source: string;
  readonly target: string;
  readonly mode: string | undefined;
}

export const VARIABLE = /\$\{(\w+):([-?])([^}]*)\}/g;

type Written = Omit<Service, 'ports'> & {
  readonly ports?: readonly (string | Port)[];
  readonly extends?: { readonly file: string; readonly service: string };
};

/** Reads a file below config/, with `extends` resolved and ports in the long form. */
export function readCompose(file: string): Compose {
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
export function interpolate(
  text: string,
  env: Readonly<Record<string, string | undefined>> = {},
): string {
  return text.replaceAll(VARIABLE, (_, name: string, form: string, rest: string) => {
    const value = env[name];
    if (value !== undefined && value !== '') return value;
    if (form === '?') throw new Error(rest);
    return rest;
  });
}

/** Values for the directories that the user must name: the example, and the secrets of the simulator. */
export const DIRECTORIES = {
  EVALWATCH_CONFIG_DIR: '.',
  EVALWATCH_SECRETS_DIR: './compose/simulator/secrets',
};

export function mounts(
  { volumes = [] }: Pick<Service, 'volumes'>,
  env: Readonly<Record<string, string | undefined>> = DIRECTORIES,
): readonly Mount[] {
  return volumes.map((text) => {
    const [source = '', target = '', mode] = interpolate(text, env).split(':');
    return { source, target, mode };
  });
}

export const isFile = ({ source }: Mount) => source.startsWith('.');
