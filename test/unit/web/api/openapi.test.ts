import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StoreError } from '../../../../src/monitor/errors.ts';
import { openApiDocument } from '../../../../src/web/api/openapi.ts';
import { anyText } from '../../../support/any-text.ts';
import { readOpenApi } from '../../../support/openapi.ts';
import { startWeb } from '../../../support/web.ts';
import { createApi, startApi } from './api-under-test.ts';
import { pollItems } from '../../../support/experiments.ts';
import { withCause } from '../../../support/failures.ts';

const document = readOpenApi(openApiDocument());
const ANSWERED = document.paths.filter((path) => path !== '/events');
/** A path of the API for one of the document. */
const pathOf = (path: string) => path.replace('{project}', 'p').replace('{prompt_id}', 'a');

/** Sets up an API with rows of every kind: failures with and without error_info, a failed poll, datasets, odd statuses. */
async function setUp() {
  const started = await startApi(['p', 'q', 'new']);
  const { store, poll, clock } = started;
  await poll('p', { a: 'RUNNING', b: 'RUNNING', c: 'paused' }, { d: 'RUNNING' });
  await poll('p', { a: 'FAILED', b: 'FAILED', e: 'FAILED' }, { d: 'NONE' });
  await poll('q');
  for (const status of ['RUNNING', 'COMPLETED', 'COMPLETED']) {
    const items = { x: [status, 'ended'], y: ['RUNNING', 'going on'] } as const;
    await pollItems(store, 'q', items, clock.now());
  }
  const [first, second] = await store.pendingFailures({ limitPerProject: 9 });
  if (first === undefined || second === undefined) throw new Error('too few failures');
  const errorInfo = { error_id: 'E1', error_msg: null };
  await store.settleFailure(first, withCause({ errorInfo, errorMsgTruncated: true }), 1);
  await store.settleFailure(second, withCause({ reason: 'unavailable' }), 2);
  return started;
}

describe('the OpenAPI document', () => {
  it('is served and documents every path of the API', async () => {
    const { api, request } = await startApi();

    const served = await request('/openapi.json');
    const paths = api.routes
      .filter(({ method }) => method === 'GET')
      .map(({ path }) => path.replaceAll(/:(\w+)/g, '{$1}'));

    expect(await served.json()).toEqual(openApiDocument());
    expect(document.paths.toSorted()).toEqual([...new Set(paths)].toSorted());
  });

  it.each(ANSWERED)('matches the 200, 304, 400 and 404 responses of %s', async (path) => {
    const { api } = await setUp();
    const first = await api.request(pathOf(path));
    const etag = first.headers.get('etag') ?? '';

    const unchanged = await api.request(pathOf(path), { headers: { 'if-none-match': etag } });
    const bad = await api.request(`${pathOf(path)}?x=1`);
    const unknown = await api.request(path.replaceAll(/\{\w+\}/g, 'nobody'));

    expect([first.status, unchanged.status, bad.status]).toEqual([200, 304, 400]);
    expect(unknown.status).toBe(path.includes('{') ? 404 : 200);
    for (const answer of [first, unchanged, bad, unknown]) {
      expect(await document.faultsOfAnswer(path, answer)).toEqual([]);
    }
  });

  it('matches rows of each kind, and rejects missing or additional fields', async () => {
    const { request } = await setUp();
    const kinds = { Project: 3, Experiment: 2, Prompt: 6, Transition: 5, Failure: 3, Cause: 2 };
    for (const [kind, count] of Object.entries(kinds)) {
      const path = `/${kind.toLowerCase()}s`;
      const { data } = (await (await request(path)).json()) as { data: object[] };
      expect([kind, data.length]).toEqual([kind, count]);
      for (const row of data) {
        expect(document.faultsOf(kind, row)).toEqual([]);
        expect(document.faultsOf(kind, { ...row, more: 1 })).not.toEqual([]);
        for (const field of Object.keys(row)) {
          const { [field]: _left, ...less } = row as Record<string, unknown>;
          expect(document.faultsOf(kind, less)).not.toEqual([]);
        }
      }
    }
  });

  it.each(ANSWERED)('matches the 503 and 405 responses of %s', async (path) => {
    const { content } = await setUp();
    const unreadable = () => Promise.reject(new StoreError('io', 'no disk'));
    const store = {
      ...content.store,
      projects: unreadable,
      experiments: unreadable,
      statuses: unreadable,
      transitions: unreadable,
      failures: unreadable,
      causes: unreadable,
    };
    const api = createApi({ ...content, store, snapshot: unreadable });
    const { url } = await startWeb({ store, snapshot: unreadable });

    const broken = await api.request(pathOf(path));
    const posted = await fetch(`${url}/api/v1${pathOf(path)}`, { method: 'POST' });

    const needsStore = path !== '/openapi.json' && path !== '/config';
    expect(broken.status).toBe(needsStore ? 503 : 200);
    expect(posted.status).toBe(405);
    expect(await document.faultsOfAnswer(path, broken)).toEqual([]);
    expect(await document.faultsOfAnswer(path, posted)).toEqual([]);
  });
});

/** Values for each parameter, valid ones among them. */
const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = {
  project: fc.constantFrom('p', 'q', 'new', 'nobody'),
  status: fc.constantFrom('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN'),
  experiment: fc.constantFrom('ended', 'nobody', ''),
  cause: fc.constantFrom('0123456789abcdef', '0123456789ABCDEF', '0123456789abcdeg'),
  since: fc.constantFrom('24h', '1h30m', '9999999999999999999d', '30 m'),
  limit: fc.integer({ min: -5, max: 1010 }).map(String),
  cursor: fc.constantFrom('MQ', Buffer.from('[1,"p","a"]').toString('base64url')),
};
const ANY = fc.oneof(fc.string(), anyText(), fc.constantFrom('', '1', 'null', '0x10', '١'));

describe('random query parameters', () => {
  it.each(ANSWERED)('of %s are accepted or rejected as documented', async (path) => {
    const { request } = await setUp();
    const documented = document.parametersOf(path, 'query');
    const names = fc.constantFrom(...documented.map(({ name }) => name), 'since', 'Limit');
    const parameter = names.chain((name) =>
      fc.tuple(fc.constant(name), fc.oneof({ weight: 5, arbitrary: VALUES[name] ?? ANY }, ANY)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(parameter, { maxLength: 3 }), async (given) => {
        const answer = await request(`${pathOf(path)}?${new URLSearchParams(given).toString()}`);
        const { status } = answer;

        expect(await document.faultsOfAnswer(path, answer)).toEqual([]);
        const isAccepted = given.every(([name, text]) => {
          const parameterOf = documented.find((each) => each.name === name);
          return parameterOf !== undefined && document.accepts(parameterOf, asValue(name, text));
        });
        const isOnce = new Set(given.map(([name]) => name)).size === given.length;
        const cursor = given.find(([name]) => name === 'cursor');
        // A cursor is opaque, so the test cannot tell whether it is valid.
        const isGood = isAccepted && isOnce && (cursor === undefined || status !== 400);
        expect(status === 400).toBe(!isGood);
      }),
      { numRuns: 150 },
    );
  });
});

/** Converts a parameter's text to the value that its schema describes. */
function asValue(name: string, text: string): unknown {
  if (name === 'limit') return /^\d+$/.test(text) ? Number(text) : text;
  return name === 'status' ? text.toUpperCase() : text;
}
