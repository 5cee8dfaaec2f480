import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import { describe, expect, it, vi } from 'vitest';
import { makeCertificate } from '../support/certificates.ts';
import { startHere } from '../support/daemon-here.ts';
import { debianTool } from '../support/debian-tool.ts';
import { workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { startAlpha } from '../support/service.ts';
import { PATIENCE, startServer } from './server.ts';

const prometheus = debianTool('prometheus', 'prometheus');
// In CI a missing program fails the tests instead of skipping them.
const runs = prometheus !== undefined || process.env['CI'] === 'true';

const HASH = bcrypt.hashSync('the password of prometheus', 10).replace('$2b$', '$2y$');
const users = (name: string) => `basic_auth_users: { ${name}: ${HASH} }\n`;
const TLS = `tls_server_config:
  cert_file: server.crt
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: authority.crt
`;

describe.runIf(runs)('Prometheus', { timeout: 300_000 }, () => {
  it('scrapes with mutual TLS and a login, across a certificate renewal, until its user is removed', async () => {
    if (prometheus === undefined) throw new Error('Prometheus is not installed');
    await using service = await startAlpha();
    const listen = `127.0.0.1:${await freePort()}`;
    await using place = await workspace(service.url, { web: { listen, config_file: 'web.yaml' } });
    const { directory } = place;
    const file = (name: string) => join(directory, name);
    const authority = makeCertificate(directory, 'authority');
    makeCertificate(directory, 'server', authority);
    makeCertificate(directory, 'client', authority);
    await writeFile(file('web.yaml'), TLS + users('prometheus'));
    await writeFile(file('password'), 'the password of prometheus');
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');

    const address = `127.0.0.1:${await freePort()}`;
    const job = {
      job_name: 'evalwatch',
      scheme: 'https',
      tls_config: {
        ca_file: authority.certFile,
        cert_file: file('client.crt'),
        key_file: file('client.key'),
      },
      basic_auth: { username: 'prometheus', password_file: file('password') },
      static_configs: [{ targets: [listen] }],
    };
    const config = { global: { scrape_interval: '5s' }, scrape_configs: [job] };
    await writeFile(file('prometheus.yml'), JSON.stringify(config));
    await using opened = new AsyncDisposableStack();
    const running = await startServer(
      prometheus,
      [
        `--config.file=${file('prometheus.yml')}`,
        `--storage.tsdb.path=${file('prometheus')}`,
        `--web.listen-address=${address}`,
      ],
      `http://${address}/-/ready`,
    );
    opened.use(running);
    const query = async (expression: string) => {
      const url = `http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`;
      const { data } = (await (await fetch(url)).json()) as {
        data: { result: readonly { value: readonly [number, string] }[] };
      };
      return data.result.map(({ value }) => value[1]);
    };
    const becomes = (expression: string, value: string) =>
      vi.waitFor(async () => expect(await query(expression)).toEqual([value]), PATIENCE);

    await becomes('evalwatch_project_up{project="alpha"}', '1');

    makeCertificate(directory, 'server', authority);
    await daemon.line('web_config.reloaded');
    const before = Number((await query('count_over_time(up[5m])'))[0]);
    await becomes(`count_over_time(up[5m]) > bool ${before + 1}`, '1');
    expect(await query('min_over_time(up[5m])')).toEqual(['1']);

    await writeFile(file('web.yaml'), TLS + users('somebody-else'));
    await becomes('up', '0');
  });
});
