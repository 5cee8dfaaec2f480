import { createPrivateKey, X509Certificate } from 'node:crypto';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { CLIENT_AUTH_TYPES, type Protection, type TlsSettings } from '../domain/options.ts';
import { type Finding, type Options, throwFaults } from './faults.ts';
import { type Tree, isMapping, mappingAt, readYamlFile } from './yaml.ts';
import { choice, mapping, path, wrongType } from './options.ts';
import { type PemFile, readPemFile } from './secrets.ts';

// The format of Prometheus' exporter-toolkit. Options that evalwatch does not support are rejected, never ignored.

const MAX_FILE_BYTES = 1024 * 1024;
const SECTION = 'tls_server_config';
/** Supported TLS versions. OpenSSL disables older ones at its default security level. */
const VERSIONS = { TLS12: 'TLSv1.2', TLS13: 'TLSv1.3' } as const;
/** Each step of the cost doubles the time of a login: at 15 it takes two seconds. */
const BCRYPT_HASH = /^\$2[aby]\$(?:0[4-9]|1[0-5])\$[./A-Za-z0-9]{53}$/;

function version() {
  return choice(['TLS12', 'TLS13'], 'TLS12 or TLS13 (older versions are not offered)').transform(
    (name) => VERSIONS[name],
  );
}

const tls = {
  cert_file: path('PEM file of the certificate, with its chain; relative to this file.'),
  key_file: path('PEM file of its private key, without a passphrase; relative to this file.'),
  client_auth_type: choice(
    CLIENT_AUTH_TYPES,
    `one of ${CLIENT_AUTH_TYPES.join(', ')} (other types verify nothing)`,
  ).default('NoClientCert'),
  client_ca_file: path(
    'PEM certificates of the CAs that client certificates are verified against; relative to this file.',
  ).optional(),
  min_version: version().prefault('TLS12'),
  max_version: version().prefault('TLS13'),
};

const http = {
  http2: z
    .literal(false, {
      error: ({ input }) =>
        input === true
          ? 'must be false or left out: evalwatch speaks HTTP/1.1 only'
          : wrongType('false')({ input }),
    })
    .optional(),
};

const root = {
  tls_server_config: mapping(tls).optional(),
  http_server_config: mapping(http).optional(),
  basic_auth_users: users().default(new Map()),
};

const webFileSchema = mapping(root);

const OPTIONS: Options = {
  keys: {
    '': Object.keys(root),
    tls_server_config: Object.keys(tls),
    http_server_config: Object.keys(http),
  },
  unsupported: {
    rate_limit: 'evalwatch limits its answers by itself',
    'tls_server_config.cert': 'use cert_file',
    'tls_server_config.key': 'use key_file',
    'tls_server_config.client_ca': 'use client_ca_file',
    'tls_server_config.client_allowed_sans':
      'evalwatch accepts every certificate that client_ca_file verifies',
    'tls_server_config.cipher_suites': 'remove it, the cipher suites are those of Node',
    'tls_server_config.prefer_server_cipher_suites':
      'remove it, the order of the cipher suites is that of Node',
    'tls_server_config.curve_preferences': 'remove it, the curves are those of Node',
    'http_server_config.headers': 'remove it, and set headers in a proxy before evalwatch',
  },
};

/** A Map of users, because names such as `__proto__` are special in an object. */
function users() {
  const hash = 'the bcrypt hash of a password with a cost from 4 to 15, as htpasswd -nB prints it';
  const schema = z
    .string({ error: wrongType(hash) })
    .regex(BCRYPT_HASH, { error: `must be ${hash}` });
  const error = wrongType('a mapping of users to the hashes of their passwords');
  return z.custom<Tree>(isMapping, { error }).transform((tree, context) => {
    const hashes = new Map<string, string>();
    for (const [user, value] of Object.entries(tree)) {
      const read = schema.safeParse(value);
      // `$2y$` and current `$2a$` hashes are the same as `$2b$`; bcrypt rejects `$2y$`.
      if (read.success) hashes.set(user, `$2b$${read.data.slice(4)}`);
      for (const { message } of read.error?.issues ?? []) {
        context.issues.push({ code: 'custom', message, path: [user], input: value });
      }
    }
    return hashes;
  });
}

/**
 * Reads and checks a web configuration file, and the certificates and keys that it names (docs/web-configuration.md).
 * @param file absolute
 * @throws {ConfigError} with all errors at once; an unreadable file or bad YAML is the only error
 */
export async function loadWebConfig(file: string): Promise<Protection> {
  const yaml = await readYamlFile(file, MAX_FILE_BYTES, '; it is named by web.config_file');
  const { tree } = yaml;
  const parsed = webFileSchema.safeParse(tree);
  const read = (key: string, kind: 'certificates' | 'key') =>
    readPemFile(tree, [SECTION, key], dirname(file), kind);
  const pems = {
    cert: read('cert_file', 'certificates'),
    key: read('key_file', 'key'),
    ca: read('client_ca_file', 'certificates'),
  };
  const findings = [
    ...checkTls(mappingAt(tree, SECTION)),
    ...Object.values(pems).flatMap((pem) => pem.findings),
    ...Object.keys(mappingAt(tree, 'basic_auth_users'))
      .filter((user) => user.includes(':'))
      .map((user) => ({
        path: ['basic_auth_users', user],
        message: 'has a colon in its name: basic authentication does not allow one',
      })),
  ];
  throwFaults(yaml, OPTIONS, parsed.error?.issues ?? [], findings);
  if (!parsed.success) throw parsed.error;
  const { tls_server_config: section, basic_auth_users: hashes } = parsed.data;
  const protection = { tls: section && toTls(section, pems), users: hashes };
  throwFaults(yaml, OPTIONS, [], checkUse(protection));
  return protection;
}

/** Checks the raw tree, so that these rules apply also when the schema rejects the file. */
function checkTls(section: Tree): readonly Finding[] {
  const { client_auth_type: asked = 'NoClientCert', client_ca_file: ca } = section;
  const findings: Finding[] = [];
  const isVerified = asked === 'VerifyClientCertIfGiven' || asked === 'RequireAndVerifyClientCert';
  if (isVerified && ca === undefined) {
    const message = `${asked} needs client_ca_file: the CA certificates that verify clients`;
    findings.push({ path: [SECTION, 'client_auth_type'], message });
  }
  if (ca !== undefined && asked === 'NoClientCert') {
    const message =
      'has no effect while client_auth_type is NoClientCert: set it to RequireAndVerifyClientCert';
    findings.push({ path: [SECTION, 'client_ca_file'], message });
  }
  if (section['min_version'] === 'TLS13' && section['max_version'] === 'TLS12') {
    const message = 'must not be below min_version: TLS12 is older than TLS13';
    findings.push({ path: [SECTION, 'max_version'], message });
  }
  return findings;
}

function toTls(
  section: NonNullable<z.output<typeof webFileSchema>[typeof SECTION]>,
  { cert, key, ca }: Readonly<Record<'cert' | 'key' | 'ca', PemFile>>,
): TlsSettings {
  return {
    clientAuth: section.client_auth_type,
    context: {
      cert: cert.text ?? '',
      key: key.text ?? '',
      ca: ca.text,
      minVersion: section.min_version,
      maxVersion: section.max_version,
    },
  };
}

/** Finds errors of a file whose options are valid one by one. */
function checkUse({ tls: settings, users: hashes }: Protection): readonly Finding[] {
  if (settings === undefined) {
    const message = 'is missing, and so is basic_auth_users: the file has no effect';
    return hashes.size === 0 ? [{ path: [SECTION], message }] : [];
  }
  const { cert, key } = settings.context;
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    return [{ path: [SECTION, 'key_file'], message: 'is not the private key of cert_file' }];
  }
  try {
    createSecureContext(settings.context);
    return [];
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return [{ path: [SECTION], message: `is rejected by OpenSSL (${code})` }];
  }
}
