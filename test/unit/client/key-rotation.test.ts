import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { HttpEvaluationService } from '../../../src/client/client.ts';
import { answering, connect, failureOf, listOptions, ofType, RUNNING, serve } from './harness.ts';

const OLD = 'the-old-key';
const NEW = 'the-new-key';
const LISTING = JSON.stringify([{ id: 'p1', status: 'RUNNING' }]);
const DETAIL = JSON.stringify({ error_info: { error_id: 'E', error_msg: 'why' } });

async function keyFile(content: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'evalwatch-rotation-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'key');
  await writeFile(file, content);
  return file;
}

/** Starts a service that accepts the new key only and calls `onRefusal` before a refusal. */
async function serveNewKey(status: number, onRefusal: () => void) {
  return await serve((request, response) => {
    if (request.headers['x-api-key'] !== NEW) {
      onRefusal();
      answering(status, `no: ${String(request.headers['x-api-key'])}`)(request, response);
      return;
    }
    answering(200, request.url?.includes('/projects/') ? LISTING : DETAIL)(request, response);
  });
}

const CALLS: readonly [string, (service: HttpEvaluationService) => Promise<unknown>][] = [
  ['a listing', (service) => service.list('p', 'prompt', listOptions())],
  ['a single prompt', (service) => service.getErrorInfo('p', 'p1', RUNNING)],
];

describe.each(CALLS)('%s whose API key is rejected', (_, call) => {
  it.each([401, 403])('with %i is requested again with the rotated key', async (status) => {
    const file = await keyFile(OLD);
    const { url, requests } = await serveNewKey(status, () => writeFileSync(file, NEW));
    const { service, events } = connect({ baseUrl: url, key: { file } });

    await call(service);

    expect(requests.map(({ headers }) => headers['x-api-key'])).toEqual([OLD, NEW]);
    expect(ofType(events, 'api.retry_sent')).toHaveLength(1);
  });

  it('is not requested again while the key is still the same', async () => {
    const file = await keyFile(OLD);
    const { url, requests } = await serveNewKey(401, () => {});
    const { service } = connect({ baseUrl: url, key: { file }, retries: 3 });

    const { reason, details } = await failureOf(call(service));

    expect([reason, details.statusCode]).toEqual(['auth', 401]);
    expect(requests).toHaveLength(1);
  });

  it('is requested again only once, even if the key changes again', async () => {
    const file = await keyFile(OLD);
    let version = 0;
    const { url, requests } = await serveNewKey(401, () => {
      version += 1;
      writeFileSync(file, `wrong-key-${version}`);
    });
    const { service } = connect({ baseUrl: url, key: { file }, retries: 3 });

    expect((await failureOf(call(service))).reason).toBe('auth');
    expect(requests).toHaveLength(2);
  });

  it('fails with the error of the key file if the file has become empty', async () => {
    const file = await keyFile(OLD);
    const { url } = await serveNewKey(401, () => writeFileSync(file, ''));
    const { service } = connect({ baseUrl: url, key: { file } });

    expect((await failureOf(call(service))).message).toBe(`the key file ${file} is empty`);
  });
});

it('a key file that is empty while being written is read a second time', async () => {
  const file = await keyFile('');
  const { url } = await serveNewKey(401, () => {});
  const { service } = connect({ baseUrl: url, key: { file } });

  const listing = service.list('p', 'prompt', listOptions());
  await writeFile(file, NEW);

  await expect(listing).resolves.toMatchObject({ unchanged: false });
});

it('a retry after status 503 uses the rotated key', async () => {
  const file = await keyFile(OLD);
  const { url, requests } = await serve((request, response) => {
    const isFirst = requests.length === 1;
    if (isFirst) writeFileSync(file, NEW);
    answering(isFirst ? 503 : 200, LISTING)(request, response);
  });
  const { service } = connect({ baseUrl: url, key: { file }, retries: 1 });

  await service.list('p', 'prompt', listOptions());

  expect(requests.map(({ headers }) => headers['x-api-key'])).toEqual([OLD, NEW]);
});

it('an answer is scrubbed of the key of its request and of the one before the rotation', async () => {
  const file = await keyFile(OLD);
  const { url } = await serve(answering(500, `${OLD} was replaced by ${NEW}`));
  const { service } = connect({ baseUrl: url, key: { file } });
  const list = async () => (await failureOf(service.list('p', 'prompt', listOptions()))).details;

  expect((await list()).detail).toBe('[redacted] was replaced by the-new-key');
  await writeFile(file, NEW);
  expect((await list()).detail).toBe('[redacted] was replaced by [redacted]');
});
