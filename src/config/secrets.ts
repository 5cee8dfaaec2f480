import { createPrivateKey, X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import type { SecretSource } from '../domain/options.ts';
import type { EmailReceiver, HttpReceiver } from '../domain/receiver.ts';
import { readTextFile } from '../files/read-file.ts';
import { parseHeartbeatUrl, parseSmtpUrl, type SmtpAddress } from './addresses.ts';
import { type HeartbeatUrl, ConfigError } from './config.ts';
import type { Finding } from './faults.ts';
import { type Tree, mappingAt } from './yaml.ts';
import { type Checked, path as pathOption } from './options.ts';

const MAX_SECRET_BYTES = 16 * 1024;
/** The largest file that is read. */
export const MAX_CERTIFICATES_BYTES = 16 * 1024 * 1024;
const MAX_KEY_BYTES = 1024 * 1024;

/** Describes the unset variable that an option names. Never has its name, which could be the secret itself. */
export function describeUnset(option: string): string {
  return `the environment variable that ${option} names is not set or is empty`;
}

/**
 * Reads the address of the PostgreSQL store, login included, and trims it. It starts with `postgres://` or
 * `postgresql://`; the engine parses the rest.
 * @throws {ConfigError} if the address is missing or invalid; its message contains no part of the address
 */
export async function readPostgresUrl(source: SecretSource): Promise<string> {
  const option = 'file' in source ? 'store.postgres_url_file' : 'store.postgres_url_env';
  return readSecret(source, [option, 'address'], (url) => {
    if (/[\r\n]/.test(url)) return { fault: 'must be one line' };
    return /^postgres(ql)?:\/\//.test(url)
      ? { value: url }
      : { fault: 'must start with postgres:// or postgresql://' };
  });
}

/**
 * Reads the address that heartbeats request.
 * @throws {ConfigError} if the address is missing or invalid; its message contains no part of the address
 */
export async function readHeartbeatUrl(source: HeartbeatUrl): Promise<string> {
  if ('url' in source) return source.url;
  return readSecret(source, ['heartbeat.url_file', 'address'], parseHeartbeatUrl);
}

/**
 * Reads the address that messages are posted to.
 * @throws {ConfigError} if the address is missing or invalid; its message names no receiver, and no part of the address
 */
export function readReceiverUrl({ url: source }: HttpReceiver): string {
  if ('url' in source) return source.url;
  return readSecret(source, [optionOf('url', source), 'address'], parseHeartbeatUrl);
}

/** Reads the address of a mail server. @throws {ConfigError} as `readReceiverUrl` */
export function readSmtpUrl({ smtpUrl: source }: EmailReceiver): SmtpAddress {
  return readSecret(source, [optionOf('smtp_url', source), 'address'], parseSmtpUrl);
}

/** Reads the key that messages are signed with, if there is one. @throws {ConfigError} as `readReceiverUrl` */
export function readSigningKey({ secret: source }: HttpReceiver): Buffer | undefined {
  if (source === undefined) return undefined;
  return readSecret(source, [optionOf('secret', source), 'secret'], parseSigningSecret);
}

const SIGNING_SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const NEW_SECRET = 'echo "whsec_$(openssl rand -base64 32)"';

/** Parses the secret of Standard Webhooks. */
export function parseSigningSecret(text: string): Checked<Buffer> {
  const key = Buffer.from(SIGNING_SECRET.exec(text)?.[1] ?? '', 'base64');
  if (key.length >= 24 && key.length <= 64) return { value: key };
  return { fault: `must be whsec_ and 24 to 64 bytes in Base64; this writes one: ${NEW_SECRET}` };
}

function optionOf(name: string, source: SecretSource): string {
  return `${name}_${'file' in source ? 'file' : 'env'}`;
}

/**
 * Reads a secret.
 * @param option the option that names its source
 * @param parse returns what is wrong with the secret without any part of it
 */
function readSecret<Value>(
  source: SecretSource,
  [option, what]: readonly [option: string, what: 'address' | 'secret'],
  parse: (text: string) => Checked<Value>,
): Value {
  const isFile = 'file' in source;
  const { text, fault } = isFile
    ? readTextFile(source.file, MAX_SECRET_BYTES)
    : { text: source.value, fault: undefined };
  const secret = text?.trim() ?? '';
  const parsed = secret === '' ? undefined : parse(secret);
  if (parsed !== undefined && parsed.fault === undefined) return parsed.value;
  const missing = isFile ? 'the file is empty' : describeUnset('this option');
  const found = fault ?? (parsed === undefined ? missing : `the ${what} ${parsed.fault}`);
  const isShown = isFile && !(source.couldBeKey && text === undefined);
  const hidden = `${found}; its path is not shown because it could be the ${what} itself`;
  const message = isShown ? `${source.file}: ${found}` : isFile ? hidden : found;
  throw new ConfigError('invalid', [{ file: option, line: 0, column: 0, message }]);
}

/**
 * Whether a text could be an API key that was given in place of the path of its file: at least 8 characters without slash
 * and dot, or a long random part.
 */
export function couldBeKey(path: string): boolean {
  const isLongAndRandom = (part: string) =>
    part.length >= 20 && /[a-z]/.test(part) && /[A-Z]/.test(part) && /\d/.test(part);
  return path.length >= 8 && (!/[/.]/.test(path) || path.split('/').some(isLongAndRandom));
}

/** The PEM file that an option names. */
export interface PemFile {
  /** Undefined if the option is absent or its file cannot be used. */
  readonly text?: string | undefined;
  /** Absolute. */
  readonly path?: string;
  readonly findings: readonly Finding[];
}

/**
 * Reads the PEM file that an option names. Returns no text and no findings for an option that is absent or not a path.
 * @param directory where relative paths start
 * @param kind one or more certificates, all of them valid; or a private key that is not encrypted
 */
export function readPemFile(
  root: Tree,
  [section, key]: readonly [section: string, key: string],
  directory: string,
  kind: 'certificates' | 'key',
): PemFile {
  const given = pathOption('').safeParse(mappingAt(root, section)[key]);
  if (!given.success) return { findings: [] };
  const path = resolve(directory, given.data);
  const isKey = kind === 'key';
  const { text, fault } = readTextFile(path, isKey ? MAX_KEY_BYTES : MAX_CERTIFICATES_BYTES);
  const unusable = isKey ? keyFault : certificatesFault;
  const found = text === undefined ? `cannot be read: ${fault}` : unusable(text);
  if (found === undefined) return { text, path, findings: [] };
  const message = `${JSON.stringify(path)} ${found}`;
  return { path, findings: [{ path: [section, key], message }] };
}

function certificatesFault(text: string): string | undefined {
  // Split at the beginnings of the blocks, so that a block without an end counts, as a damaged one.
  const certificates = text.split(/(?=-----BEGIN )/).filter((block) => BEGINNING.test(block));
  if (certificates.length === 0) return 'is not a PEM file: no certificate found';
  const damaged = certificates.findIndex((pem) => !parses(() => new X509Certificate(pem)));
  return damaged === -1
    ? undefined
    : `has a damaged certificate (${damaged + 1} of ${certificates.length})`;
}

const BEGINNING = /^-----BEGIN CERTIFICATE-----/;

function keyFault(text: string): string | undefined {
  if (parses(() => createPrivateKey(text))) return undefined;
  return text.includes('ENCRYPTED')
    ? 'has an encrypted private key: store it without a passphrase'
    : 'is not a PEM file: no usable private key found';
}

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}
