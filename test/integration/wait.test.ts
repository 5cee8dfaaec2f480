import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import bcrypt from 'bcrypt';
import { describe, expect, it } from 'vitest';
import { makeCertificate } from '../support/certificates.ts';
import { evalwatch } from '../support/command-line.ts';
import { startHere } from '../support/daemon-here.ts';
import { startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { promptDetail, promptItem, sendJson, startService } from '../support/service.ts';

/** How often the daemon is killed. Set KILLS for more. */
const KILLS = Number(process.env['KILLS'] ?? 5);

/** Starts a service of the project alpha whose prompts have experiments. */
async function startExperiments() {
  /** Statuses of prompts, by id and experiment. */
  const prompts = new Map<string, { readonly experiment: string; status: string }>();
  const service = await startService(({ path }, response) => {
    if (path.startsWith('/v2/prompts/')) {
      const error = { error_id: 'MODEL_TIMEOUT', error_msg: 'gave up' };
      sendJson(response, promptDetail(error));
      return;
    }
    const items = [...prompts].map(([id, { experiment, status }]) => ({
      ...promptItem(id, status),
      experiment,
    }));
    sendJson(response, items);
  });
  return {
    url: service.url,
    set: (experiment: string, statuses: Readonly<Record<string, string>>) => {
      for (const [id, status] of Object.entries(statuses)) prompts.set(id, { experiment, status });
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

describe('evalwatch wait with a daemon', UNHURRIED, () => {
  const timeout = 300_000 + 6000 * KILLS;
  it(`has the right exit code beside ${KILLS} kills of the daemon`, { timeout }, async () => {
    await using service = await startExperiments();
    const listen = `127.0.0.1:${await freePort()}`;
    await using place = await workspace(service.url, { web: { listen } });
    const state = { daemon: startDaemon(place), kills: 0, isOver: false };
    await state.daemon.line('project.baseline');
    const killing = (async () => {
      while (!state.isOver) {
        // Some are killed before they answer, others after some polls.
        await sleep(randomInt(4000));
        await state.daemon.stop('SIGKILL');
        state.kills += 1;
        state.daemon = startDaemon(place);
      }
    })();
    await using end = new AsyncDisposableStack();
    end.defer(async () => {
      state.isOver = true;
      await killing;
      await state.daemon.stop('SIGKILL');
    });

    for (let run = 1; run <= 2 || state.kills < KILLS; run += 1) {
      const experiment = `run-${run}`;
      let hasEnded = false;
      const wait = async (...options: readonly string[]) => {
        const url = ['--url', `http://${listen}`, '--project', 'alpha'];
        const finished = await evalwatch(['wait', ...url, '--json', ...options]);
        return { ...finished, hasEnded };
      };
      const allowed = ['--experiment', experiment, '--max-failure-ratio', '0.25'];
      const before = wait(...allowed);
      const ids = ['a', 'b', 'c', 'd'].map((letter) => `${experiment}-${letter}`);
      for (const status of ['PENDING', 'RUNNING']) {
        service.set(experiment, Object.fromEntries(ids.map((id) => [id, status])));
        await sleep(randomInt(2000));
      }
      const strict = wait('--experiment', experiment);
      const any = wait('--max-failure-ratio', '0.25');
      const failed = run % 3;
      for (const [index, id] of ids.entries()) {
        await sleep(randomInt(1000));
        service.set(experiment, { [id]: index < failed ? 'FAILED' : 'COMPLETED' });
      }
      hasEnded = true;
      const after = wait(...allowed);

      const results = await Promise.all([before, any, after, strict]);
      const code = failed <= 1 ? 0 : 1;
      expect(results.map((each) => each.code)).toEqual([code, code, code, failed === 0 ? 0 : 1]);
      const prompts = { PENDING: 0, RUNNING: 0, COMPLETED: 4 - failed, FAILED: failed, UNKNOWN: 0 };
      for (const result of results) {
        expect(result.hasEnded).toBe(true);
        expect(JSON.parse(result.stdout)).toMatchObject([{ experiment, prompts }]);
      }
      if (KILLS > 5) console.log(`${run} runs, ${state.kills} kills`);
    }
  });

  it('logs in, trusts the authorities of the system, and says what else is wrong', async () => {
    await using service = await startExperiments();
    await using place = await workspace(service.url, { web: { config_file: 'web.yaml' } });
    const authority = makeCertificate(place.directory, 'authority');
    makeCertificate(place.directory, 'server', authority);
    const login = join(place.directory, 'login');
    await writeFile(
      join(place.directory, 'web.yaml'),
      `tls_server_config: { cert_file: server.crt, key_file: server.key }\nbasic_auth_users: { ci: ${bcrypt.hashSync('hunter2', 4)} }\n`,
    );
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set('nightly', { p1: 'COMPLETED' });
    const url = await daemon.url();
    const args = ['wait', '--url', url, '--project', 'alpha', '--experiment', 'nightly'];
    const trusting = { env: { SSL_CERT_FILE: authority.certFile } };
    await writeFile(login, 'ci:hunter2\n');
    const right = await evalwatch([...args, '--user-file', login], trusting);
    expect(right).toMatchObject({ code: 0, stderr: expect.not.stringContaining('error') });

    await writeFile(login, 'ci:hunter3\n');
    const wrong = await evalwatch([...args, '--user-file', login], trusting);
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the daemon answers 401'),
    });
    const distrusting = await evalwatch([...args, '--user-file', login]);
    expect(distrusting).toMatchObject({ code: 2, stderr: expect.stringContaining('certificate') });
  });
});
