import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { configFile, resolveFromUser } from '../../../src/config/environment.ts';
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
  ])('with --config %s and EVALWATCH_CONFIG=%s is %s', (option, variable, file) => {
    expect(configFile(option, { EVALWATCH_CONFIG: variable })).toBe(file);
  });
});

describe('a relative path', () => {
  const npm = { npm_package_json: join(root, 'package.json'), INIT_CWD: '/home/user' };

  it('is resolved from the working directory outside of npm', () => {
    process.chdir(directory);
    expect(resolveFromUser('x', {})).toBe(join(process.cwd(), 'x'));
  });

  it('is resolved from INIT_CWD if npm runs a script of this package', () => {
    process.chdir(root);
    expect(resolveFromUser('x', npm)).toBe('/home/user/x');
  });

  it('is resolved from INIT_CWD also if npm reaches this package by a symbolic link', () => {
    process.chdir(root);
    symlinkSync(root, join(directory, 'link'));
    const env = { ...npm, npm_package_json: join(directory, 'link/package.json') };
    expect(resolveFromUser('x', env)).toBe('/home/user/x');
  });

  it.each([
    ['a script of another package runs us', { npm_package_json: '/other/package.json' }],
    ['npm did not say where it was called', { INIT_CWD: '' }],
    ['INIT_CWD is no absolute path', { INIT_CWD: 'user' }],
  ])('is resolved from the working directory when %s', (_when, env) => {
    process.chdir(root);
    expect(resolveFromUser('x', { ...npm, ...env })).toBe(join(process.cwd(), 'x'));
  });

  it('is resolved from the working directory if the process has left the package directory', () => {
    process.chdir(directory);
    expect(resolveFromUser('x', npm)).toBe(join(process.cwd(), 'x'));
  });
});
