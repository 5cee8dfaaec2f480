import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { contentOf, readSources, sourcesOf } from '../../../src/config/load.ts';
import { errorOf, loadText, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();

beforeEach(() => rmSync(join(directory, 'projects.d'), { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(directory, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

/** Loads a configuration with these projects files, and these projects of its own. */
function loadWith(files: readonly string[], own = '') {
  return loadText(
    directory,
    `service: {base_url: 'https://evaluation.example.com', api_key_file: key}
projects_files: ${JSON.stringify(files)}
${own}`,
  );
}

async function faultsOf(loading: ReturnType<typeof loadWith>) {
  const { faults } = await errorOf(loading);
  return faults.map(({ file, line, column, message }) => {
    return `${file.slice(directory.length + 1)}:${line}:${column}: ${message}`;
  });
}

describe('projects files', () => {
  it('add their projects to those of the configuration file, in the order of their names', async () => {
    write('projects.d/b.yaml', '- id: b\n  api_key_file: keys/b\n');
    write('projects.d/a.json', '[{"id": "a", "team": "search"}]');
    write('projects.d/.c.yaml', '- id: hidden\n');
    const one = write('one.yaml', '# none\n[]\n');
    const files = ['one.yaml', 'projects.d/*.yaml', 'projects.d/*.json', one];
    const { projects, sources } = await loadWith(files, 'projects: [{id: own}]');
    expect(projects.map(({ id, team }) => [id, team])).toEqual([
      ['own', ''],
      ['b', ''],
      ['a', 'search'],
    ]);
    expect(projects[1]?.key).toEqual({ file: join(directory, 'projects.d/keys/b') });
    expect(projects[2]?.key).toEqual({ file: join(directory, 'key') });
    expect(sources.map(({ path, projects: ids }) => [path.slice(directory.length), ids])).toEqual([
      ['/evalwatch.yaml', undefined],
      ['/one.yaml', []],
      ['/projects.d/b.yaml', ['b']],
      ['/projects.d/a.json', ['a']],
    ]);
  });

  it('may have all projects', async () => {
    write('projects.d/a.yaml', '- id: a\n');
    expect((await loadWith(['projects.d/*.yaml'])).projects).toMatchObject([{ id: 'a' }]);
    expect(await faultsOf(loadWith(['projects.d/*.txt']))).toEqual([
      'evalwatch.yaml:1:1: projects is missing: it must be a list of at least one project',
    ]);
  });

  it('have errors by file and line', async () => {
    write('projects.d/a.yaml', '- id: a\n  schedule: never\n- id: twice\n- id: twice\n');
    write('projects.d/b.yaml', '- id: own\n  tem: search\n- id: a\n- b\n');
    const own = 'projects:\n- id: own\n- id: 5';
    expect(await faultsOf(loadWith(['projects.d/*.yaml'], own))).toEqual([
      'evalwatch.yaml:5:7: projects[1].id must be the id of a project, not 5: put it in quotes',
      'projects.d/a.yaml:2:13: [0].schedule "never" must be a cron expression of 5 fields, or 6 with seconds first, not 1',
      'projects.d/a.yaml:4:7: [2].id "twice" duplicates the id on line 3',
      `projects.d/b.yaml:1:7: [0].id "own" duplicates the id on line 4 of ${directory}/evalwatch.yaml`,
      'projects.d/b.yaml:2:3: unknown key "tem", did you mean "team"?',
      `projects.d/b.yaml:3:7: [1].id "a" duplicates the id on line 1 of ${directory}/projects.d/a.yaml`,
      'projects.d/b.yaml:4:3: [2] must be a mapping (key: value), not a text: write `- id: b`',
    ]);
  });

  it.each([
    ['', 'the file must be a list of projects (- id: ID); write [] for none'],
    ['projects: []', 'the file must be a list of projects (- id: ID); write [] for none'],
    ['- id: [', 'not valid YAML: wrong indentation, or a bracket that is not closed'],
  ])('that are empty or broken, as %j, are refused', async (text, says) => {
    write('projects.d/a.yaml', text);
    const [fault] = await faultsOf(loadWith(['projects.d/*.yaml'], 'projects: [{id: own}]'));
    expect(fault).toMatch(/^projects\.d\/a\.yaml:1:\d: /);
    expect(fault).toContain(says);
  });

  it('that are named without a star must exist', async () => {
    expect(await faultsOf(loadWith(['a.yaml'], 'projects: [{id: own}]'))).toEqual([
      'a.yaml:1:1: there is no such file; it is named by projects_files',
    ]);
  });

  it.each(['*/a.yaml', '**/a.yaml', 'a?.yaml', '{a,b}.yaml', '[ab].yaml'])(
    'cannot be named as %j',
    async (pattern) => {
      expect(await faultsOf(loadWith([pattern], 'projects: [{id: own}]'))).toEqual([
        'evalwatch.yaml:2:18: projects_files[0] can have * in the name of the file only, and no other wildcards',
      ]);
    },
  );

  it('are watched, also new ones and those that are gone', async () => {
    const file = write('projects.d/a.yaml', '- id: a\n');
    const config = await loadWith(['projects.d/*.yaml'], 'projects: [{id: own}]');
    const isInForce = () => readSources(sourcesOf(config)).content === contentOf(config.sources);
    expect(isInForce()).toBe(true);
    const other = write('projects.d/b.yaml', '- id: b\n');
    expect(isInForce()).toBe(false);
    rmSync(other);
    expect(isInForce()).toBe(true);
    rmSync(file);
    expect(isInForce()).toBe(false);
  });
});
