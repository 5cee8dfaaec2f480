import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config.ts';
import { loadWebConfig } from '../../../src/config/web-file.ts';
import { readYamlFile } from '../../../src/config/yaml.ts';
import { errorOf, loadText, places, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
const HASH = '$2b$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze';

async function loadWeb(text: string) {
  const file = join(directory, 'web.yaml');
  writeFileSync(file, text);
  return await loadWebConfig(file);
}

async function read(text: string) {
  const file = join(directory, 'any.yaml');
  writeFileSync(file, text);
  return await readYamlFile(file, text.length, '');
}

describe.each(['__proto__', 'constructor'])('the name %s of Object.prototype', (name) => {
  it('is accepted as a user name, and named in an error about its hash', async () => {
    const { users } = await loadWeb(`basic_auth_users:\n  ${name}: ${HASH}\n`);
    expect([...users]).toEqual([[name, HASH]]);
    await expect(loadWeb(`basic_auth_users:\n  ${name}: secret\n`)).rejects.toThrow(
      `web.yaml:2:${name.length + 5}: basic_auth_users.${name} must be the bcrypt hash`,
    );
  });

  it.each([
    ['the top level', (key: string) => `${key}\n`],
    ['service', (key: string) => `service:\n  ${key}\n`],
    ['a project', (key: string) => `projects:\n  - id: a\n    ${key}\n`],
  ])('is rejected as an unknown key at its position in %s', async (_, write) => {
    const text = write(`${name}: { base_url: x, id: x }`);
    const { faults } = await errorOf(loadText(directory, text));
    const before = text.slice(0, text.indexOf(name)).split('\n');
    const place = `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    expect(places(faults)).toContainEqual(expect.stringMatching(`^${place} unknown key "${name}"`));
  });

  it('is reported as a duplicate key if it is given twice', async () => {
    const text = `${name}: 1\n${name}: 2\n`;
    const document = await read(text);
    expect(document).toMatchObject({
      faults: [{ line: 2, message: `duplicate key "${name}", first given on line 1` }],
    });
  });
});

it('a user name keeps its spelling even if it looks like a number, a boolean or null', async () => {
  const names = ['0123', '1e3', '0x10', 'true', '~'];
  const lines = names.map((name) => `  ${name}: ${HASH}\n`).join('');
  const { users } = await loadWeb(`basic_auth_users:\n${lines}`);
  expect([...users.keys()]).toEqual(names);
});

it('a line break in a user name adds no line to the error message', async () => {
  const text = `basic_auth_users:\n  "a:\\nweb.yaml:1:1: all is well": ${HASH}\n`;
  const error = await loadWeb(text).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ConfigError);
  expect(String(error).split('\n')).toHaveLength(1);
});
