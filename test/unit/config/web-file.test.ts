import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config-error.ts';
import { loadWebConfig } from '../../../src/config/web-file/web-file.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { places, temporaryDirectory } from './loading.ts';

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
      files: ['web.yaml', 'server.crt', 'server.key'].map((name) => join(directory, name)),
      tls: {
        clientAuth: 'NoClientCert',
        context: {
          cert: server.cert,
          key: server.key,
          ca: undefined,
          minVersion: 'TLSv1.2',
          maxVersion: 'TLSv1.3',
          honorCipherOrder: true,
        },
      },
      users: new Map(),
      headers: {},
    });
  });

  it('accepts every exporter-toolkit option that Node supports', async () => {
    const config = await load(`${tls(
      'client_ca_file: other.crt',
      'client_auth_type: RequireAndVerifyClientCert',
      'min_version: TLS12',
      'max_version: TLS12',
      'cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256]',
      'prefer_server_cipher_suites: false',
      'curve_preferences: [X25519, CurveP256, CurveP384, CurveP521, X25519MLKEM768]',
    )}
http_server_config:
  http2: false
  headers:
    Content-Security-Policy: default-src 'self'
    Strict-Transport-Security: max-age=31536000
    X-Content-Type-Options: nosniff
    X-Frame-Options: deny
    X-XSS-Protection: ''
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
        ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384:TLS_AES_128_GCM_SHA256',
        ecdhCurve: 'X25519:P-256:P-384:P-521:X25519MLKEM768',
        honorCipherOrder: false,
      },
    });
    expect(config.users).toEqual(
      new Map(['alice', 'bob', 'carol'].map((user) => [user, HASH.replace('2y', '2b')])),
    );
    expect(config.headers).toEqual({
      'Content-Security-Policy': "default-src 'self'",
      'Strict-Transport-Security': 'max-age=31536000',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'deny',
    });
  });

  const hash =
    'must be the bcrypt hash of a password with a cost from 4 to 15, as htpasswd -nB prints it';
  const section = 'tls_server_config';
  it.each<[string, string, readonly string[]]>([
    [
      'that is empty',
      '# nothing\n',
      [
        `1:1 ${section} is missing, and so are basic_auth_users and headers: the file has no effect`,
      ],
    ],
    ['that is a list', '- a\n', ['1:1 the file must be a mapping (key: value)']],
    [
      'with unknown keys',
      'basic_auth_user: {}\ntls_server_config: { cert_fil: server.crt, key_file: server.key }\n',
      [
        '1:1 unknown key "basic_auth_user", did you mean "basic_auth_users"?',
        `2:20 ${section}.cert_file is missing: it must be a path`,
        '2:22 unknown key "cert_fil", did you mean "cert_file"?',
      ],
    ],
    [
      'with passwords instead of hashes',
      `basic_auth_users:\n  alice: secret-password\n  bob: 12\n  a:b: ${HASH}\n  dear: ${HASH.replace('10', '16')}\n`,
      [
        `2:10 basic_auth_users.alice ${hash}`,
        `3:8 basic_auth_users.bob ${hash}, not a number`,
        '4:8 basic_auth_users."a:…" has a colon in its name: basic authentication does not allow one',
        `5:9 basic_auth_users.dear ${hash}`,
      ],
    ],
    [
      'with what Go has and Node has not',
      `${tls('min_version: TLS10', 'cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]', 'curve_preferences: [CurveP224]')}\nhttp_server_config:\n  http2: true\n`,
      [
        `4:16 ${section}.min_version must be TLS12 or TLS13 (older versions are not offered), not "TLS10", did you mean "TLS12"?`,
        `5:19 ${section}.cipher_suites[0] must be a cipher suite as Go's crypto/tls names it, not "TLS_RSA_WITH_RC4_128_SHA", did you mean "TLS_RSA_WITH_AES_128_CBC_SHA"?`,
        `6:23 ${section}.curve_preferences[0] must be one of CurveP256, CurveP384, CurveP521, X25519, X25519MLKEM768, not "CurveP224", did you mean "CurveP256"?`,
        '8:10 http_server_config.http2 must be false or left out: evalwatch speaks HTTP/1.1 only',
      ],
    ],
    [
      'with what evalwatch does not do',
      `${tls('cert: x', 'key: x', 'client_ca: x', 'client_allowed_sans: [x]')}\nrate_limit: { burst: 1 }\n`,
      [
        `4:9 ${section}.cert is not supported: use cert_file`,
        `5:8 ${section}.key is not supported: use key_file`,
        `6:14 ${section}.client_ca is not supported: use client_ca_file`,
        `7:24 ${section}.client_allowed_sans is not supported: evalwatch accepts every certificate that client_ca_file verifies`,
        '8:13 rate_limit is not supported: evalwatch limits its answers by itself',
      ],
    ],
    [
      'with headers that are none',
      'http_server_config:\n  headers:\n    X-Frame-Options: never\n    X-XSS-Protection: "1\\n2"\n    Server: me\n',
      [
        '3:22 http_server_config.headers.X-Frame-Options must be deny or sameorigin, not "never"',
        '4:23 http_server_config.headers.X-XSS-Protection must be one line of plain ASCII',
        '5:5 unknown key "Server"',
      ],
    ],
    [
      'that verifies clients by nobody',
      tls('client_auth_type: VerifyClientCertIfGiven'),
      [
        `4:21 ${section}.client_auth_type VerifyClientCertIfGiven needs client_ca_file: the CA certificates that verify clients`,
      ],
    ],
    [
      'that asks no client for a certificate',
      tls('client_ca_file: other.crt'),
      [
        `4:19 ${section}.client_ca_file has no effect while client_auth_type is NoClientCert: set it to RequireAndVerifyClientCert`,
      ],
    ],
    [
      'with a misspelt client_auth_type',
      tls('client_auth_type: RequireAndVerify'),
      [
        `4:21 ${section}.client_auth_type must be one of NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven, RequireAndVerifyClientCert, not "RequireAndVerify", did you mean "RequireAndVerifyClientCert"?`,
      ],
    ],
    [
      'with versions the wrong way round',
      tls('min_version: TLS13', 'max_version: TLS12'),
      [`5:16 ${section}.max_version must not be below min_version: TLS12 is older than TLS13`],
    ],
    [
      'with files that are not there, or something else',
      'tls_server_config:\n  cert_file: text\n  key_file: nowhere\n  client_ca_file: .\n  client_auth_type: RequireAndVerifyClientCert\n',
      [
        `2:14 ${section}.cert_file "HERE/text" is not a PEM file: no certificate found`,
        `3:13 ${section}.key_file "HERE/nowhere" cannot be read: there is no such file`,
        `4:19 ${section}.client_ca_file "HERE" cannot be read: this is a directory, not a file`,
      ],
    ],
    [
      'with a damaged certificate and a key that needs a passphrase',
      'tls_server_config: { cert_file: damaged.crt, key_file: locked.key }\n',
      [
        `1:33 ${section}.cert_file "HERE/damaged.crt" has a damaged certificate (1 of 1)`,
        `1:56 ${section}.key_file "HERE/locked.key" has an encrypted private key: store it without a passphrase`,
      ],
    ],
    [
      'with a file that is no key',
      'tls_server_config: { cert_file: server.crt, key_file: text }\n',
      [`1:55 ${section}.key_file "HERE/text" is not a PEM file: no usable private key found`],
    ],
    [
      'with a user whose hash is part of the key',
      `basic_auth_users: { "alice:${HASH}": "" }\n`,
      [
        `1:91 basic_auth_users."alice:…" ${hash}`,
        '1:91 basic_auth_users."alice:…" has a colon in its name: basic authentication does not allow one',
      ],
    ],
    [
      'with the key of another certificate',
      'tls_server_config: { cert_file: server.crt, key_file: other.key }\n',
      [`1:55 ${section}.key_file is not the private key of cert_file`],
    ],
    [
      'with a key that OpenSSL finds too short',
      'tls_server_config: { cert_file: short.crt, key_file: short.key }\n',
      [`1:20 ${section} is rejected by OpenSSL (ERR_SSL_EE_KEY_TOO_SMALL)`],
    ],
    [
      'with a key in the place of its path',
      'tls_server_config: { cert_file: server.crt, key_file: "-----BEGIN PRIVATE KEY-----" }\n',
      [`1:55 ${section}.key_file must be the path of a file, not the content of the file`],
    ],
    [
      'without a key',
      'tls_server_config: { cert_file: server.crt }\n',
      [`1:20 ${section}.key_file is missing: it must be a path`],
    ],
  ])('%s is rejected with the position of each error', async (_, text, expected) => {
    expect(await faultsOf(text)).toEqual(expected);
  });

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
