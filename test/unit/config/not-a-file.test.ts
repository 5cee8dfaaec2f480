import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readHeartbeatUrl, readPostgresUrl, readReceiverUrl } from '../../../src/config/secrets.ts';
import type { HttpReceiver } from '../../../src/domain/receiver.ts';
import { loadWebConfig } from '../../../src/config/web-file.ts';
import { readUrl } from '../../../src/store/postgres/url.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { notFiles } from '../../support/not-a-file.ts';
import { load, loadText, minimal, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
const { certFile, keyFile } = makeCertificate(directory, 'server');

const web = async (section: object) => {
  const file = join(directory, 'web.yaml');
  writeFileSync(
    file,
    JSON.stringify({ tls_server_config: { cert_file: certFile, key_file: keyFile, ...section } }),
  );
  return await loadWebConfig(file);
};

/** Functions that read a path, by the option that names it. */
const PLACES: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
  'the main file': (path) => load(path),
  'service.ca_file': (path) =>
    loadText(directory, minimal({ service: `ca_file: ${JSON.stringify(path)}` })),
  'store.postgres_url_file': (path) => readPostgresUrl({ file: path }),
  'heartbeat.url_file': (path) => readHeartbeatUrl({ file: path }),
  'notify.url_file': async (path) => readReceiverUrl({ url: { file: path } } as HttpReceiver),
  sslrootcert: (path) => readUrl(`postgres://me@db/d?sslrootcert=${encodeURIComponent(path)}`),
  'web.config_file': loadWebConfig,
  cert_file: (path) => web({ cert_file: path }),
  key_file: (path) => web({ key_file: path }),
  client_ca_file: (path) =>
    web({ client_auth_type: 'RequireAndVerifyClientCert', client_ca_file: path }),
};

it('the configuration file and the files it names must be regular files', async () => {
  const others = await notFiles(directory);
  for (const [place, read] of Object.entries(PLACES)) {
    for (const [what, path] of Object.entries(others)) {
      const message = await read(path).then(
        () => 'read',
        (error: unknown) => String(error),
      );
      expect(message, `${place}: ${what}`).toMatch(
        place === 'sslrootcert'
          ? 'sslrootcert that cannot be read'
          : /only regular files are read|this is a directory/,
      );
    }
  }
});
