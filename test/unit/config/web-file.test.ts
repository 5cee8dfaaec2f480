import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config.ts';
import { loadWebConfig } from '../../../src/config/web-file.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { places, readCases, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
const server = makeCertificate(directory, 'server');
makeCertificate(directory, 'other');
const HASH = '$2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze';

writeFileSync(join(directory, 'text'), 'neither certificate nor key\n');
writeFileSync(join(directory, 'damaged.crt'), server.cert.replace(/\n.{8}/, '\nAAAAAAAA'));
const locking = ['ec', '-aes128', '-passout', 'pass:secret', '-in', server.keyFile];
execFileSync('openssl', [...locking, '-out', join(directory, 'locked.key')], { stdio: 'ignore' });
const short = ['req', '-x509', '-newkey', 'rsa:512', '-nodes', '-subj', '/CN=short'];
const shortFiles = ['-keyout', join(directory, 'short.key'), '-out', join(directory, 'short.crt')];
execFileSync('openssl', [...short, ...shortFiles], { stdio: 'ignore' });

function load(text: string) {
  const file = join(directory, 'web.yaml');
  writeFileSync(file, text);
  return loadWebConfig(file);
}

async function faultsOf(text: string): Promise<readonly string[]> {
  const error = await load(text).catch((reason: unknown) => reason);
  if (error instanceof ConfigError) {
    return places(error.faults).map((fault) => fault.replace(directory, 'HERE'));
  }
  throw new Error(`not refused: ${String(error)}`);
}

const tls = (...lines: readonly string[]) =>
  ['tls_server_config:', '  cert_file: server.crt', '  key_file: server.key']
    .concat(lines.map((line) => `  ${line}`))
    .join('\n');

describe('a web configuration file', () => {
  it('resolves paths from its own directory and has defaults for missing options', async () => {
    expect(await load(tls())).toEqual({
      tls: {
        clientAuth: 'NoClientCert',
        context: {
          cert: server.cert,
          key: server.key,
          ca: undefined,
          minVersion: 'TLSv1.2',
          maxVersion: 'TLSv1.3',
        },
      },
      users: new Map(),
    });
  });

  it('accepts every option that evalwatch supports', async () => {
    const config = await load(`${tls(
      'client_ca_file: other.crt',
      'client_auth_type: RequireAndVerifyClientCert',
      'min_version: TLS12',
      'max_version: TLS12',
    )}
http_server_config:
  http2: false
basic_auth_users:
  alice: ${HASH}
  bob: ${HASH.replace('2y', '2a')}
  carol: ${HASH.replace('2y', '2b')}
`);
    expect(config.tls).toMatchObject({
      clientAuth: 'RequireAndVerifyClientCert',
      context: {
        ca: expect.stringContaining('BEGIN CERTIFICATE'),
        minVersion: 'TLSv1.2',
        maxVersion: 'TLSv1.2',
      },
    });
    expect(config.users).toEqual(
      new Map(['alice', 'bob', 'carol'].map((user) => [user, HASH.replace('2y', '2b')])),
    );
  });

  const cases = readCases('bad-web-files.txt', ['tls', 'file', 'fault']);

  it.each(cases.map((each) => [each.fault.join('\n'), each] as const))(
    'is rejected with the position of each error: %s',
    async (expected, { tls: options, file }) => {
      const text = [...(options.length > 0 ? [tls(...options)] : []), ...file].join('\n');
      expect((await faultsOf(text)).join('\n')).toBe(expected);
    },
  );

  it('is valid as shipped in config/web.example.yaml', async () => {
    const file = join(import.meta.dirname, '../../../config/web.example.yaml');
    const config = await load(readFileSync(file, 'utf8'));
    expect([...config.users.keys()]).toEqual(['prometheus']);
    expect(bcrypt.compareSync('change-me', config.users.get('prometheus') ?? '')).toBe(true);

    const all = readFileSync(file, 'utf8')
      .replace(/# (client_\w+:)/g, '$1')
      .replace('clients-ca.crt', 'other.crt');
    expect((await load(all)).tls?.clientAuth).toBe('RequireAndVerifyClientCert');
  });

  it('is rejected if it is not valid YAML or does not exist', async () => {
    expect(await faultsOf('a: [')).toEqual([expect.stringContaining('not valid YAML')]);
    await expect(loadWebConfig(join(directory, 'nowhere.yaml'))).rejects.toThrow(
      'nowhere.yaml:1:1: there is no such file; it is named by web.config_file',
    );
  });
});
