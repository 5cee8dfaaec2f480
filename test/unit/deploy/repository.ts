import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';

// The manifests must agree with the image, the shipped files and the configuration that the daemon reads.

const ROOT = join(import.meta.dirname, '../../..');
export const CONFIG = join(ROOT, 'config');

export function readText(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** @param file below config/ */
export function readYaml(file: string): unknown {
  return parse(readText(`config/${file}`), { merge: true });
}

const dockerfile = readText('Dockerfile');
/** The last stage, which is the image. */
const instructions = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));

function instruction(name: string): string {
  const [, value] = new RegExp(`^${name} (.+)$`, 'm').exec(instructions) ?? [];
  if (value === undefined) throw new Error(`The image has no ${name}.`);
  return value;
}

/** Properties of the image, from the Dockerfile. */
export const image = {
  name: `evalwatch:${(JSON.parse(readText('package.json')) as { version: string }).version}`,
  port: Number(instruction('EXPOSE')),
  volume: instruction('VOLUME'),
  hasHealthCheck: /^HEALTHCHECK /m.test(instructions),
  env: Object.fromEntries(
    [...instructions.matchAll(/\b(EVALWATCH_[A-Z_]+)=(\S+)/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  ) as Readonly<Record<string, string>>,
} as const;

/** Loads a configuration as the daemon in the image would. */
export async function loadInImage(file: string): Promise<Config> {
  return await loadConfig({ file, env: image.env, requireSecrets: true });
}
