import { createPrivateKey, X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import type { Checked } from './values/checked.ts';
import { readTextFile } from '../files/read-file.ts';
import { mappingAt, type Tree } from './document/tree.ts';
import type { Finding } from './finding.ts';
import { isPath } from './values/option-types.ts';

const MAX_CERTIFICATES_BYTES = 16 * 1024 * 1024;
const MAX_KEY_BYTES = 1024 * 1024;
const BEGINNING = '-----BEGIN ';

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
 */
export async function readPemFile(
  root: Tree,
  option: readonly [section: string, key: string],
  directory: string,
  read: typeof readCertificates,
): Promise<PemFile> {
  const [section, key] = option;
  const given = mappingAt(root, section)[key];
  if (!isPath(given)) return { findings: [] };
  const path = resolve(directory, given);
  const { value: text, fault } = await read(path);
  return { text, path, findings: fault === undefined ? [] : [{ path: option, message: fault }] };
}

/** Reads a PEM file with one or more certificates, all of them valid. */
export async function readCertificates(path: string): Promise<Checked<string>> {
  return await readPem(path, MAX_CERTIFICATES_BYTES, (text) => {
    const certificates = certificatesIn(text);
    if (certificates.length === 0) return 'is not a PEM file: no certificate found';
    const damaged = certificates.findIndex((pem) => !parses(() => new X509Certificate(pem)));
    return damaged === -1
      ? undefined
      : `has a damaged certificate (${damaged + 1} of ${certificates.length})`;
  });
}

/** Splits a text at the beginnings of its blocks, so that a block without an end counts, as a damaged one. */
function certificatesIn(text: string): readonly string[] {
  return text
    .split(BEGINNING)
    .slice(1)
    .filter((block) => block.startsWith('CERTIFICATE-----'))
    .map((block) => BEGINNING + block);
}

/** Reads a PEM file with a private key that is not encrypted. */
export async function readPrivateKey(path: string): Promise<Checked<string>> {
  return await readPem(path, MAX_KEY_BYTES, (text) => {
    if (parses(() => createPrivateKey(text))) return undefined;
    return text.includes('ENCRYPTED')
      ? 'has an encrypted private key: store it without a passphrase'
      : 'is not a PEM file: no usable private key found';
  });
}

async function readPem(
  path: string,
  maxBytes: number,
  findFault: (text: string) => string | undefined,
): Promise<Checked<string>> {
  const file = readTextFile(path, maxBytes);
  const fault = file.text === undefined ? `cannot be read: ${file.fault}` : findFault(file.text);
  return fault === undefined
    ? { value: file.text ?? '' }
    : { fault: `${JSON.stringify(path)} ${fault}` };
}

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}
