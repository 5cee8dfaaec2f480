import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import { describe, expect, it, vi } from 'vitest';
import { ask } from '../support/ask.ts';
import { type Certificate, makeCertificate } from '../support/certificates.ts';
import { readHere, startHere } from '../support/daemon-here.ts';
import {
  type ConfigurationChange,
  PATIENCE,
  startDaemon,
  UNHURRIED,
  type Workspace,
  workspace,
} from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { healthCheck, patientHealthCheck } from '../support/health-check.ts';
import { startAlpha } from '../support/service.ts';

const PASSWORD = 'correct horse';
const HASH = bcrypt.hashSync(PASSWORD, 4).replace('$2b$', '$2y$');
const TLS = 'tls_server_config: { cert_file: server.crt, key_file: server.key }\n';
const USERS = `basic_auth_users: { alice: ${HASH}, bob: ${HASH} }\n`;
const ALICE = { auth: `alice:${PASSWORD}` };
const BOB = { auth: `bob:${PASSWORD}` };

interface Place extends Workspace {
  readonly authority: Certificate;
  write(text: string): Promise<void>;
}

/** Creates a workspace with a web configuration and certificates for it. */
async function place(
  baseUrl: string,
  web: string,
  change: ConfigurationChange = {},
): Promise<Place> {
  const there = await workspace(baseUrl, {
    ...change,
    web: { config_file: 'web.yaml', enable_lifecycle: true, ...change.web },
  });
  const authority = makeCertificate(there.directory, 'authority');
  makeCertificate(there.directory, 'server', authority);
  const write = (text: string) => writeFile(join(there.directory, 'web.yaml'), text);
  await write(web);
  return { ...there, authority, write };
}

describe('a daemon with web.config_file', UNHURRIED, () => {
  it('serves its users only, over TLS, and applies renewed certificates and removed users', async () => {
    await using service = await startAlpha();
    await using there = await place(service.url, TLS + USERS);
    await using daemon = await startHere(there);
    const url = await daemon.url();
    const trusting = { ca: there.authority.cert, rejectUnauthorized: true };

    expect(url).toMatch(/^https:/);
    expect((await ask(`${url}/metrics`, trusting)).status).toBe(401);
    const before = await ask(`${url}/metrics`, { ...trusting, ...BOB });
    expect(before).toMatchObject({
      status: 200,
      text: expect.stringContaining('evalwatch_build_info'),
    });
    expect((await ask(`${url}/-/ready`, trusting)).status).toBe(200);

    makeCertificate(there.directory, 'server', there.authority);
    await there.write(`${TLS}basic_auth_users: { alice: ${HASH} }\n`);
    await vi.waitFor(async () => {
      expect((await ask(`${url}/metrics`, { ...trusting, ...BOB })).status).toBe(401);
    }, PATIENCE);

    const after = await ask(`${url}/metrics`, { ...trusting, ...ALICE });
    expect(after.status).toBe(200);
    expect(after.serial).not.toBe(before.serial);
    await daemon.line('web_config.reloaded');
    await daemon.stop();
    expect(daemon.stdout()).not.toContain(PASSWORD);
    expect(daemon.stdout()).not.toContain(HASH.slice(4));
  });

  it('reports the error in an invalid file and does not start', async () => {
    await using there = await place(
      'http://127.0.0.1:1',
      `${TLS}basic_auth_users: { alice: secret }\n`,
    );
    await using daemon = startDaemon(there);
    const { code, stderr } = await daemon.ended;
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^\/.*web\.yaml:2:28: basic_auth_users\.alice must be the bcrypt hash.*\n$/,
    );
    expect(daemon.lines).toEqual([]);
  });

  it('keeps the last valid file and reports the error if the file becomes invalid', async () => {
    await using service = await startAlpha();
    await using there = await place(service.url, USERS);
    await using daemon = await startHere(there);
    const url = await daemon.url();
    const metrics = async () => {
      const { status, text } = await ask(`${url}/metrics`, ALICE);
      const [, good] = /^evalwatch_config_last_reload_successful (\d)/m.exec(text) ?? [];
      return [status, good];
    };
    expect(await metrics()).toEqual([200, '1']);

    await there.write(USERS.replace('}', ''));
    const line = await daemon.line('web_config.reload_failed');
    expect(await metrics()).toEqual([200, '0']);
    expect(line).toMatchObject({ level: 'error', reasons: [expect.stringContaining('web.yaml:')] });
    const reload = await ask(`${url}/-/reload`, { method: 'POST', ...ALICE });
    expect([reload.status, reload.text]).toEqual([500, expect.stringContaining('web.yaml:')]);
    await daemon.line('config.reload_failed');

    await there.write(USERS);
    const again = await ask(`${url}/-/reload`, { method: 'POST', ...ALICE });
    expect(again.status).toBe(200);
    expect(await metrics()).toEqual([200, '1']);
  });

  it('rejects a reload that removes TLS, which needs a restart', async () => {
    await using service = await startAlpha();
    await using there = await place(service.url, TLS + USERS);
    await using daemon = await startHere(there);
    const url = await daemon.url();
    await there.write(USERS);

    const reload = await ask(`${url}/-/reload`, { method: 'POST', ...ALICE });

    expect(reload.status).toBe(500);
    expect(reload.text).toContain(
      'tls_server_config cannot be added or removed while evalwatch runs: restart it',
    );
    expect((await ask(`${url}/metrics`, ALICE)).status).toBe(200);
  });

  it('passes the health check of the image even if it requires client certificates and users', async () => {
    await using service = await startAlpha();
    const port = await freePort();
    const strict = TLS.replace(
      ' }',
      ', client_auth_type: RequireAndVerifyClientCert, client_ca_file: authority.crt }',
    );
    await using there = await place(service.url, strict + USERS, {
      web: { listen: `127.0.0.1:${port}` },
    });
    const listen = { EVALWATCH_WEB_LISTEN: `0.0.0.0:${port}` };
    expect((await healthCheck(listen)).code).toBe(1);
    await using daemon = await startHere(there);
    await daemon.line('daemon.started');

    expect(await patientHealthCheck(listen)).toEqual({ code: 0, stderr: '' });
    const { code, json } = await readHere(there, ['status', '--json']);
    expect([code, json()]).toEqual([0, []]);
  });
});

it('check validates web.config_file', UNHURRIED, async () => {
  await using there = await place('http://127.0.0.1:1', TLS + USERS);
  expect((await readHere(there, ['check'])).code).toBe(0);

  await there.write(`${TLS}basic_auth_user: {}\n`);
  const said = await readHere(there, ['check']);
  expect(said.code).toBe(2);
  expect(said.stderr).toContain('web.yaml:2:1: unknown key "basic_auth_user", did you mean');
  const { code, stdout } = await readHere(there, ['check', '--json']);
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({ errors: [{ line: 2, column: 1 }] });
});
