import { createHash } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { NODE_CONTENDERS, type ContenderName } from '../../../bench/contenders/contenders.ts';
import { runContender } from '../../../bench/measure.ts';
import { findPython } from '../../../bench/python.ts';
import { startBenchService, type BenchService } from '../../../bench/service.ts';
import { listingBodies, projectIds, type Workload } from '../../../bench/workload.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const PROJECTS = 2;
const PROMPTS = 200;
const VERSIONS = 3;
const python = findPython();

/** Last body of each project. */
const lastBodies = projectIds(PROJECTS).map((_, project) => {
  const bodies = [...listingBodies(project, { prompts: PROMPTS, versions: VERSIONS })];
  return bodies.at(-1) ?? Buffer.of();
});

interface Row {
  readonly project: string;
  readonly id: string;
  readonly status: string;
}

const lastRows: readonly Row[] = lastBodies.flatMap((body, index) =>
  (JSON.parse(body.toString()) as Row[]).map(({ id, status }) => ({
    project: `project-${index}`,
    id,
    status,
  })),
);

const workload: Workload = {
  projects: PROJECTS,
  prompts: PROMPTS,
  versions: VERSIONS,
  encoding: 'identity',
  etag: false,
};

describe.each(['identity', 'gzip'] as const)('contenders with %s bodies', (encoding) => {
  it.each([
    ['download', { bytes: total(lastBodies.map(({ length }) => length)) }],
    ['parse', { prompts: PROJECTS * PROMPTS }],
    ['evalwatch', { prompts: PROJECTS * PROMPTS, transitions: PROJECTS * 2, unchanged: 0 }],
    ['node', { prompts: PROJECTS * PROMPTS, changed: PROJECTS * 2 }],
  ] as const)('%s returns the right outcome for its bodies', async (contender, outcome) => {
    await using service = await startBenchService({ ...workload, encoding });
    await using directory = await temporaryDirectory();
    expect(await pollThrough(contender, service, directory.path)).toStrictEqual(outcome);
  });

  it('sha256 returns the digest of the decoded body', async () => {
    await using service = await startBenchService({ ...workload, projects: 1, encoding });
    await using directory = await temporaryDirectory();
    const digest = createHash('sha256')
      .update(lastBodies[0] ?? '')
      .digest('base64');
    expect(await pollThrough('sha256', service, directory.path, 1)).toStrictEqual({ digest });
  });
});

it('"not modified" and evalwatch count every unchanged listing', async () => {
  await using service = await startBenchService({ ...workload, versions: 1, etag: true });
  await using directory = await temporaryDirectory();
  const bare = await pollThrough('not modified', service, directory.path);
  const own = await pollThrough('evalwatch', service, directory.path);
  expect(bare).toStrictEqual({ unchanged: PROJECTS });
  expect(own).toMatchObject({ unchanged: PROJECTS, transitions: 0 });
});

const DAEMONS = `SELECT p.id AS project, r.id, r.status FROM record r
  JOIN listing l USING (listing_key) JOIN project p USING (project_key)`;
const PEERS = 'SELECT project, id, status FROM prompt';

it.each([
  ['evalwatch', 'evalwatch.db', DAEMONS],
  ['node', 'peer.db', PEERS],
])('%s stores the last listing of each project', async (contender, file, query) => {
  await using service = await startBenchService(workload);
  await using directory = await temporaryDirectory();
  await pollThrough(contender as keyof typeof NODE_CONTENDERS, service, directory.path);
  expect(rowsIn(join(directory.path, file), query)).toStrictEqual(lastRows);
});

it('insert has stored the first listing', async () => {
  await using service = await startBenchService({ ...workload, projects: 1 });
  await using directory = await temporaryDirectory();
  await pollThrough('insert', service, directory.path, 1, 1);
  const [first = Buffer.of()] = listingBodies(0, workload);
  const wanted = (JSON.parse(first.toString()) as Row[]).map(({ id, status }) => ({ id, status }));
  const rows = rowsIn(join(directory.path, 'floor.db'), 'SELECT id, status FROM prompt');
  expect(rows).toStrictEqual(wanted);
});

it.skipIf(python === undefined)(
  'python stores the last listings and counts their changes',
  async () => {
    await using service = await startBenchService(workload);
    await using directory = await temporaryDirectory();
    const { outcome } = await runContender(task('python', service, directory.path));
    expect(outcome).toStrictEqual({ prompts: PROJECTS * PROMPTS, changed: PROJECTS * 2 });
    expect(rowsIn(join(directory.path, 'peer.db'), PEERS)).toStrictEqual(lastRows);
  },
);

it('runContender returns the same outcome from a process of its own, with measurements', async () => {
  await using service = await startBenchService(workload);
  await using directory = await temporaryDirectory();
  const sample = await runContender(task('evalwatch', service, directory.path));
  expect(sample.outcome).toMatchObject({ prompts: PROJECTS * PROMPTS, transitions: PROJECTS * 2 });
  for (const metric of ['cpuMs', 'wallMs', 'peakBytes'] as const) {
    expect(sample[metric]).toBeGreaterThan(0);
  }
});

it('join renders about as many bytes as a scrape of evalwatch', async () => {
  await using service = await startBenchService(workload);
  await using scraped = await temporaryDirectory();
  await using joined = await temporaryDirectory();
  const scrape = await pollThrough('evalwatch scrape', service, scraped.path);
  const lines = await pollThrough('join', service, joined.path);
  // The number of digits of times and sizes varies.
  expect(Number(lines['bytes']) / Number(scrape['bytes'])).toBeCloseTo(1, 1);
});

/** Polls every version. Returns the outcome of the last round. */
async function pollThrough(
  name: keyof typeof NODE_CONTENDERS,
  service: BenchService,
  directory: string,
  projects = PROJECTS,
  rounds = VERSIONS,
) {
  const open = await NODE_CONTENDERS[name]();
  const baseUrl = service.urlOf(encodeURIComponent(name));
  const contender = await open({ baseUrl, projects: projectIds(projects), directory });
  try {
    for (let round = 1; round < rounds; round += 1) {
      await contender.prepare?.();
      await contender.poll();
    }
    await contender.prepare?.();
    return await contender.poll();
  } finally {
    await contender.close();
  }
}

function task(contender: ContenderName, service: BenchService, directory: string) {
  return {
    contender,
    baseUrl: service.urlOf(contender),
    projects: projectIds(PROJECTS),
    directory,
    warmUp: 1,
    polls: VERSIONS - 1,
    fresh: false,
  };
}

function rowsIn(file: string, query: string): readonly unknown[] {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare(`${query} ORDER BY 1, 2`).all();
  } finally {
    db.close();
  }
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
