import { createPrivateKey, X509Certificate } from 'node:crypto';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import { readCertificates, readPemFile, readPrivateKey } from '../pem-file.ts';
import { toConfigError, notAMapping } from '../to-config-error.ts';
import { readDocument } from '../document/read-document.ts';
import type { Finding } from '../finding.ts';
import { isMapping, mappingAt, type Tree } from '../document/tree.ts';
import type { Protection, TlsSettings } from '../../domain/protection.ts';
import { WEB_KEYS, webFileSchema, type WebFile } from './web-schema.ts';

const MAX_FILE_BYTES = 1024 * 1024;
const SECTION = 'tls_server_config';

/** Content of a valid web configuration file (docs/web-configuration.md). */
export interface WebConfig extends Protection {
  /** Absolute paths: the file itself, and all files that it names. */
  readonly files: readonly string[];
}

/**
 * Reads and checks a web configuration file, and the certificates and keys that it names (docs/web-configuration.md).
 * @param file absolute
 * @throws {ConfigError} with all errors at once; an unreadable file or bad YAML is the only error
 */
export async function loadWebConfig(file: string): Promise<WebConfig> {
  const document = await readDocument(file, MAX_FILE_BYTES, '; it is named by web.config_file');
  const root = document.value ?? {};
  if (!isMapping(root)) throw notAMapping(document, file);
  const parsed = webFileSchema.safeParse(root);
  const read = (key: string, readFile: typeof readCertificates) =>
    readPemFile(root, [SECTION, key], dirname(file), readFile);
  const [cert, key, ca] = await Promise.all([
    read('cert_file', readCertificates),
    read('key_file', readPrivateKey),
    read('client_ca_file', readCertificates),
  ]);
  const findings = [
    ...checkTlsRules(mappingAt(root, SECTION)),
    ...[cert, key, ca].flatMap((pem) => pem.findings),
    ...checkUsers(mappingAt(root, 'basic_auth_users')),
  ];
  const issues = parsed.error?.issues ?? [];
  const checked = { file, document, keys: WEB_KEYS };
  const error = toConfigError({ ...checked, issues, findings });
  if (!parsed.success || error !== undefined) throw error ?? parsed.error;
  const config = toProtection(parsed.data, { cert: cert.text, key: key.text, ca: ca.text });
  const unusable = toConfigError({ ...checked, issues: [], findings: checkCombination(config) });
  if (unusable !== undefined) throw unusable;
  return { ...config, files: [file, ...[cert, key, ca].flatMap(({ path }) => path ?? [])] };
}

/** PEM texts. */
interface Pems {
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly ca: string | undefined;
}

/** Checks the raw tree, so that these rules apply also when the schema rejects the file. */
function checkTlsRules(section: Tree): readonly Finding[] {
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

function checkUsers(users: Tree): readonly Finding[] {
  return Object.keys(users)
    .filter((user) => user.includes(':'))
    .map((user) => ({
      path: ['basic_auth_users', user],
      message: 'has a colon in its name: basic authentication does not allow one',
    }));
}

function toProtection(content: WebFile, pems: Pems): Protection {
  const { tls_server_config: tls, basic_auth_users: users, http_server_config: http } = content;
  const headers = Object.entries(http.headers).flatMap(([name, value]) =>
    value ? [[name, value] as const] : [],
  );
  return {
    tls: tls && toTls(tls, pems),
    // `$2y$` and current `$2a$` hashes are the same as `$2b$`; bcrypt rejects `$2y$`.
    users: new Map(users.entries().map(([user, hash]) => [user, `$2b$${hash.slice(4)}`])),
    headers: Object.fromEntries(headers),
  };
}

type TlsSection = NonNullable<WebFile[typeof SECTION]>;

function toTls(tls: TlsSection, { cert = '', key = '', ca }: Pems): TlsSettings {
  const ciphers = tls.cipher_suites.join(':');
  const curves = tls.curve_preferences.join(':');
  return {
    clientAuth: tls.client_auth_type,
    context: {
      cert,
      key,
      ca,
      minVersion: tls.min_version,
      maxVersion: tls.max_version,
      honorCipherOrder: tls.prefer_server_cipher_suites,
      ...(ciphers !== '' && { ciphers }),
      ...(curves !== '' && { ecdhCurve: curves }),
    },
  };
}

/** Finds errors of a file whose options are valid one by one. */
function checkCombination({ tls, users, headers }: Protection): readonly Finding[] {
  if (tls === undefined) {
    const hasNoEffect = users.size === 0 && Object.keys(headers).length === 0;
    const message = 'is missing, and so are basic_auth_users and headers: the file has no effect';
    return hasNoEffect ? [{ path: [SECTION], message }] : [];
  }
  const { cert, key } = tls.context;
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    return [{ path: [SECTION, 'key_file'], message: 'is not the private key of cert_file' }];
  }
  try {
    createSecureContext(tls.context);
    return [];
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return [{ path: [SECTION], message: `is rejected by OpenSSL (${code})` }];
  }
}
