import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  allowsColor,
  configFile,
  environment,
  readVariable,
  resolveFromUser,
} from '../../../src/config/environment.ts';
import { temporaryDirectory } from './loading.ts';

const root = join(import.meta.dirname, '../../..');
const directory = temporaryDirectory();
const start = process.cwd();

afterEach(() => {
  process.chdir(start);
});

describe('the configuration file', () => {
  it.each([
    ['/option.yaml', '/variable.yaml', '/option.yaml'],
    [undefined, '/variable.yaml', '/variable.yaml'],
    [undefined, '', join(start, 'config/evalwatch.yaml')],
    ['option.yaml', undefined, join(start, 'option.yaml')],
    [undefined, 'variable.yaml', join(start, 'variable.yaml')],
  ])('is, with --config %s and EVALWATCH_CONFIG=%s, %s', (option, variable, file) => {
    expect(configFile(option, { EVALWATCH_CONFIG: variable })).toBe(file);
  });
});

describe('a relative path starts from', () => {
  const npm = { npm_package_json: join(root, 'package.json'), INIT_CWD: '/home/user' };

  it('where the user stands', () => {
    process.chdir(directory);
    expect(resolveFromUser('x', {})).toBe(join(process.cwd(), 'x'));
  });

  it('where the user stood before npm moved the process into the package', () => {
    process.chdir(root);
    expect(resolveFromUser('x', npm)).toBe('/home/user/x');
  });

  it('there also when npm knows the package by a symbolic link', () => {
    process.chdir(root);
    symlinkSync(root, join(directory, 'link'));
    const env = { ...npm, npm_package_json: join(directory, 'link/package.json') };
    expect(resolveFromUser('x', env)).toBe('/home/user/x');
  });

  it.each([
    ['a script of another package runs us', { npm_package_json: '/other/package.json' }],
    ['npm did not say where it was called', { INIT_CWD: '' }],
    ['INIT_CWD is no absolute path', { INIT_CWD: 'user' }],
  ])('the working directory when %s', (_when, env) => {
    process.chdir(root);
    expect(resolveFromUser('x', { ...npm, ...env })).toBe(join(process.cwd(), 'x'));
  });

  it('the working directory when the script has moved on by itself', () => {
    process.chdir(directory);
    expect(resolveFromUser('x', npm)).toBe(join(process.cwd(), 'x'));
  });
});

describe('a variable', () => {
  it('that only the prototype has is unset', () => {
    expect(readVariable(environment(), 'constructor')).toBeUndefined();
    expect(readVariable(environment(), '__proto__')).toBeUndefined();
  });

  it('is found', () => {
    expect(readVariable(environment(), 'PATH')).toBe(process.env['PATH']);
  });
});

describe('colour', () => {
  it.each([
    [{}, { isTTY: true }, true],
    [{ NO_COLOR: '' }, { isTTY: true }, true],
    [{ NO_COLOR: '1' }, { isTTY: true }, false],
    [{ TERM: 'dumb' }, { isTTY: true }, false],
    [{}, {}, false],
  ])('with %j on %j: %s', (env, stream, allowed) => {
    expect(allowsColor(env, stream)).toBe(allowed);
  });
});
