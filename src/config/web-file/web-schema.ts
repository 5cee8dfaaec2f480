import { z } from 'zod';
import { CIPHER_SUITES, CURVES, TLS_VERSIONS } from './tls-names.ts';
import { choice, flag, mapping, path, wrongType } from '../values/option-types.ts';
import { isMapping, type Tree } from '../document/tree.ts';
import { CLIENT_AUTH_TYPES } from '../../domain/protection.ts';

// The format of Prometheus' exporter-toolkit. Options that evalwatch does not support are rejected, never ignored.

/** Each step of the cost doubles the time of a login: at 15 it takes two seconds. */
const BCRYPT_HASH = /^\$2[aby]\$(?:0[4-9]|1[0-5])\$[./A-Za-z0-9]{53}$/;

const tls = {
  cert_file: path('PEM file of the certificate, with its chain; relative to this file.'),
  key_file: path('PEM file of its private key, without a passphrase; relative to this file.'),
  client_auth_type: choice(CLIENT_AUTH_TYPES).default('NoClientCert'),
  client_ca_file: path(
    'PEM certificates of the CAs that client certificates are verified against; relative to this file.',
  ).optional(),
  min_version: version().prefault('TLS12'),
  max_version: version().prefault('TLS13'),
  cipher_suites: z
    .array(translated(CIPHER_SUITES, "a cipher suite as Go's crypto/tls names it"), {
      error: wrongType('a list of cipher suites'),
    })
    .default([]),
  prefer_server_cipher_suites: flag(true, 'Whether the order of cipher_suites decides.'),
  curve_preferences: z
    .array(translated(CURVES), {
      error: wrongType('a list of curves'),
    })
    .default([]),
  cert: unsupported('use cert_file'),
  key: unsupported('use key_file'),
  client_ca: unsupported('use client_ca_file'),
  client_allowed_sans: unsupported(
    'evalwatch accepts every certificate that client_ca_file verifies',
  ),
};

const headers = {
  'Content-Security-Policy': header(),
  'Strict-Transport-Security': header(),
  'X-Content-Type-Options': choice(['nosniff', ''], 'nosniff').optional(),
  'X-Frame-Options': choice(['deny', 'sameorigin', ''], 'deny or sameorigin').optional(),
  'X-XSS-Protection': header(),
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
  headers: mapping(headers).default({}),
};

const root = {
  tls_server_config: mapping(tls).optional(),
  http_server_config: mapping(http).default({ headers: {} }),
  basic_auth_users: users().default(new Map()),
  rate_limit: unsupported('evalwatch limits its answers by itself'),
};

export const webFileSchema = mapping(root);
export type WebFile = z.output<typeof webFileSchema>;

/** Names of the options in each section; users are not options. */
export const WEB_KEYS: Readonly<Record<string, readonly string[]>> = {
  '': Object.keys(root),
  tls_server_config: Object.keys(tls),
  http_server_config: [...Object.keys(http), ...Object.keys(headers)],
};

/** A name of Go's crypto/tls, converted to that of OpenSSL. */
function translated<Name>(names: Readonly<Record<string, Name>>, what?: string) {
  return choice(Object.keys(names), what).transform((name) => names[name] ?? z.NEVER);
}

function version() {
  return translated(TLS_VERSIONS, 'TLS12 or TLS13 (older versions are not offered)');
}

function header() {
  return z
    .string({ error: wrongType('a text') })
    .regex(/^[\t\x20-\x7e]*$/, { error: 'must be one line of plain ASCII' })
    .optional();
}

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
      if (read.success) hashes.set(user, read.data);
      for (const { message } of read.error?.issues ?? []) {
        context.issues.push({ code: 'custom', message, path: [user], input: value });
      }
    }
    return hashes;
  });
}

function unsupported(instead: string) {
  return z.never({ error: `is not supported: ${instead}` }).optional();
}
